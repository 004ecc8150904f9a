"""Values of every wrong kind: what is no number, no count, no distribution, no channel."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import gymnasium as gym
import numpy as np

import ldp_gym

TABLE = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]
RULES = {"hypotheses": TABLE, "horizon": 4, "channel": "randomized-response"}
CHANNEL = ldp_gym.CHANNELS["randomized-response"](2, 3, 4)
FINE = np.full(3, 1 / 3)

NO_NUMBERS: list[Any] = [
    "1",
    "",
    b"1",
    1 + 1j,
    True,
    np.True_,
    [1],
    (1, 2),
    {},
    {1},
    object(),
    object,
    print,
    Decimal(1),
    np.timedelta64(5, "s"),
    np.datetime64("2026-01-01"),
    datetime.timedelta(1),
    datetime.date(2026, 1, 1),
    np.array([1.0, 2.0]),
    np.array(1.0),
    np.array([], dtype=np.float64),
    np.complex128(1),
    np.ma.masked,
    np.ma.array([1.0], mask=[True]),
    ...,
    NotImplemented,
    range(3),
    math.nan,
    np.float32("nan"),
]
COUNTS = [*NO_NUMBERS, 2.5, 2.0, np.float64(3), math.inf, -math.inf, -1, -(10**400), 10**400, 10**5000]
MEASURES = [
    *NO_NUMBERS,
    0,
    0.0,
    -1,
    -0.5,
    math.inf,
    -math.inf,
    10**400,
    -(10**400),
    10**5000,
    np.float64("inf"),
]
JOBS = [*(value for value in COUNTS if not isinstance(value, int)), 0, -2, True, 10**400]
SHARES = [*NO_NUMBERS, -1, -0.5, math.inf, -math.inf, 10**400, -(10**400)]
SEEDS = [*NO_NUMBERS, 2.5, math.inf, -1, -(10**400), np.float64(3)]
FLAGS: list[Any] = [
    "True",
    "",
    b"1",
    1,
    0,
    1.0,
    1j,
    [],
    {},
    object(),
    math.nan,
    np.array([True]),
    np.ma.masked,
]
WORDS: list[Any] = [
    "nope",
    "",
    b"paper",
    3,
    1.5,
    1j,
    True,
    [],
    {},
    ["paper"],
    object(),
    math.nan,
    np.array(["paper"]),
]
OPTIONS: list[Any] = ["x", b"x", 3, 1.5, True, [1], [("a", 1)], {1: 2}, {"no_such_option": 1}, object(), FINE]
FUNCTIONS: list[Any] = ["print", b"x", 3, 1.5, True, [], {}, object(), FINE]
THINGS: list[Any] = [
    "nobody",
    "",
    b"split",
    3,
    -1,
    1.5,
    1j,
    math.nan,
    True,
    {1: 2},
    object(),
    object,
    np.datetime64("2026-01-01"),
]


def is_zero(value: Any) -> bool:
    """Whether a value is the number 0."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == 0


def no_tables(rows: int, columns: int) -> list[Any]:
    """What is no table of so many distributions."""
    good = np.full((rows, columns), 1.0 / columns)
    text, objects = good.astype(str), good.astype(object)
    objects[0, 0] = "0.5"
    huge, missing, off = good.astype(object), good.copy(), good.copy()
    huge[-1, 0] = 10**400
    missing[0, 0], off[-1, 0] = math.nan, 0.9
    negative, infinite = good.copy(), good.copy()
    negative[0, :2] = -0.5, 1.5
    infinite[-1, -1] = math.inf
    return [
        *NO_ARRAYS,
        text.tolist(),
        text,
        good.astype("S8"),
        objects,
        huge,
        missing,
        off,
        off.tolist(),
        negative,
        infinite,
        good.astype(complex),
        good.astype(complex).tolist(),
        (good * 10).astype("m8[s]"),
        (good * 10).astype("M8[s]"),
        good > 0.0,
        (good > 0.0).tolist(),
        np.ma.array(good, mask=good > 0.4),
        np.ma.array(good, mask=False),
        [[0.5, 0.5], [1.0]],
        [[None] * columns] * rows,
        [[], []],
        np.zeros((rows, 0)),
        np.zeros((rows, columns)),
        np.array([(0.5, 0.5)], dtype=[("a", float), ("b", float)]),
        good[..., None],
    ]


NO_ARRAYS: list[Any] = [
    "abc",
    b"abc",
    3,
    1.5,
    1j,
    True,
    {},
    {"a": 1},
    {1},
    object(),
    print,
    math.nan,
    math.inf,
]


def no_rows(length: int) -> list[Any]:
    """What is no distribution over so many labels."""
    good = np.full(length, 1.0 / length)
    short = [
        [0.5] * (length - 1),
        np.full(length + 1, 0.2),
        good[None, :, None],
        [],
        [0.5, "0.5"],
        [0.5, None],
    ]
    return [
        *NO_ARRAYS,
        *(good.astype(kind) for kind in ("U4", "S4", "m8[s]", "M8[s]", complex, bool)),
        *(np.where(np.arange(length) == 0, odd, good) for odd in (math.nan, math.inf, -0.5, 0.9)),
        np.ma.array(good, mask=True),
        np.array([10**400] * length, dtype=object),
        *short,
    ]


def no_arrays(*shape: int) -> list[Any]:
    """What are no finite numbers of that shape."""
    good = np.zeros(shape)
    odd, huge = good.copy(), good.astype(object)
    odd.flat[0], huge.flat[0] = math.nan, 10**400
    return [
        *NO_ARRAYS,
        good.astype(str),
        good.astype("S4"),
        good.astype(complex),
        odd,
        huge,
        odd + math.inf,
        good.astype("m8[s]"),
        good.astype("M8[s]"),
        np.ma.array(good, mask=True),
        np.zeros((*shape, 7)),
        [[1], [1, 2]],
    ]


LISTS: list[Any] = [
    "abc",
    b"abc",
    3,
    1.5,
    1j,
    True,
    object(),
    ["a"],
    [1.5],
    [-1],
    [True],
    [10**400],
    [math.nan],
    {1: 2},
]
LEARNERS: list[Any] = [
    *THINGS,
    "builtins:dict",
    "os:path",
    "builtins:int",
    "nowhere:Learner",
    "ldp_gym:Nobody",
    "math:pi",
    ":",
    "a:b:c",
    dict,
    int,
    [],
    {},
    lambda game: None,
    lambda game: 3,
    FINE,
]
GAMES: list[Any] = [*THINGS, None, [], {"horizn": 3}, gym.spaces.Discrete(2), FINE, ldp_gym.Game]
CHANNELS: list[Any] = [*THINGS, None, "split", type(CHANNEL), [], FINE]
LABELS = [
    "a",
    b"a",
    1.5,
    1j,
    True,
    -1,
    3,
    10**400,
    [0, 3],
    [-1],
    ["0"],
    [0.0],
    [math.nan],
    None,
    object(),
    {},
    np.timedelta64(1, "D"),
]
MESSAGES = ["a", b"a", math.nan, 1.5, 1j, -1, 3, None, object(), [0, "1"], np.datetime64("2026-01-01")]
GENERATORS = ["a", 3, None, object(), 1.5, [], np.random, np.random.RandomState(0)]

KINDS: dict[str, list[Any]] = {
    **dict.fromkeys(
        [
            "num_hypotheses",
            "num_labels",
            "horizon",
            "context_dim",
            "num_envs",
            "num_coordinates",
            "episodes",
            "trials",
            "samples",
            "length",
            "candidates_tried",
            "generations",
            "fresh",
            "pool_size",
            "most_sets",
            "switches",
            "num_members",
            "num_switches",
            "parts",
        ],
        COUNTS,
    ),
    **dict.fromkeys(
        [
            "epsilon",
            "gamma",
            "noise_scale",
            "alpha",
            "concentration",
            "scale",
            "rate",
            "max_loss",
            "logit_range",
        ],
        MEASURES,
    ),
    **dict.fromkeys(["delta", "confidence", "share", "rho", "members", "kl_risk", "shift"], SHARES),
    **dict.fromkeys(["seed", "class_seed", "pool_seed"], SEEDS),
    **dict.fromkeys(
        ["adaptive", "averages", "leaders", "observe_candidates", "redraw_hypotheses", "reveal"], FLAGS
    ),
    **dict.fromkeys(["rule", "clipping", "calibration", "order", "autoreset_mode", "render_mode"], WORDS),
    **dict.fromkeys(
        ["hypotheses_kwargs", "channel_kwargs", "nature_kwargs", "truth_kwargs", "options"], OPTIONS
    ),
    **dict.fromkeys(["progress"], FUNCTIONS),
    "channel": CHANNELS,
    "learner": LEARNERS,
    "game": GAMES,
    "candidates": no_tables(2, 3),
    "posterior": no_rows(2),
    "weights": no_rows(2),
}
"""What is wrong for an argument of that name, unless a call says otherwise."""
