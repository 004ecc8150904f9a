"""The rules of a game: the keyword arguments of ``gym.make("LDPDist-v0", ...)``, described once."""

from __future__ import annotations

import difflib
import functools
import hashlib
import inspect
import json
import math
import pickle
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, ParamSpec, Self, TypeVar

import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.core import validation
from ldp_gym.core.errors import summarize
from ldp_gym.core.registry import plain, read_signature
from ldp_gym.engine.losses import DEFAULT_LOSSES, loss_names
from ldp_gym.hypotheses.base import HYPOTHESES
from ldp_gym.natures.base import Nature
from ldp_gym.truths.base import TRUTHS, Truth

if TYPE_CHECKING:
    from ldp_gym.engine.scenario import Scenario

S = TypeVar("S")
R = TypeVar("R", bound="Rules")
T = TypeVar("T")
P = ParamSpec("P")

DEFAULT_HORIZON = 1000
"""Number of rounds where neither the rules nor a replayed truth say it."""

PARTY_RULES = ("hypotheses", "channel", "nature", "truth")
"""Rules that name a party of the game; ``..._kwargs`` holds further options of a named one."""

CLASS_RULES = (
    "hypotheses",
    "num_hypotheses",
    "num_labels",
    "context_dim",
    "class_seed",
    "hypotheses_kwargs",
)
"""Names of the rules about the class of hypotheses."""

CHANNEL_RULES = ("channel", "channel_kwargs", "epsilon", "delta")
"""Names of the rules about the channel."""

NATURE_RULES = ("nature", "nature_kwargs")
"""Names of the rules about the contexts."""

TRUTH_RULES = ("truth", "truth_kwargs")
"""Names of the rules about the distribution of the labels."""


def rule(default: T, sentence: str) -> T:
    """Declare a rule, or another argument of an environment: its default, and what it means.

    Example:
        >>> @dataclass(frozen=True)
        ... class Coin:
        ...     sides: int = rule(2, "number of sides.")
        >>> Coin().sides, fields(Coin)[0].metadata["sentence"]
        (2, 'number of sides.')
    """
    declared: Any = field(default=default, metadata={"sentence": sentence})
    return declared


@dataclass(frozen=True, kw_only=True, eq=False)
class Rules:
    """Description of a game: its rules, each with its type, its default and its meaning.

    Two descriptions are equal if their keys are. ``help(ldp_gym.LDPDistEnv.__init__)`` lists the rules.

    Example:
        >>> rules = Rules(hypotheses=[[0.5, 0.5], [0.9, 0.1]], horizon=10)
        >>> rules.to_json()
        '{"horizon": 10, "hypotheses": [[0.5, 0.5], [0.9, 0.1]]}'
        >>> rules == Rules.of(json.loads(rules.to_json())) == Rules(**rules.given, channel="laplace-single")
        True
    """

    env_id: ClassVar[str] = "LDPDist-v0"
    """Id of the environment that takes these arguments."""

    takes: ClassVar[tuple[str, ...]] = (
        *CLASS_RULES,
        *CHANNEL_RULES,
        "horizon",
        *NATURE_RULES,
        *TRUTH_RULES,
        "observe_candidates",
        "redraw_hypotheses",
        "batch",
        "losses",
        "reveal",
        "max_loss",
    )
    """Names of the rules that this environment takes; the others keep their defaults.

    A new rule is taken only where it is added to this list.
    """

    hypotheses: object = rule(
        "softmax-linear",
        "the class F: a name, a ``(K, M)`` table (array or nested lists), a list of callables, a list of "
        'fitted classifiers, a HypothesisClass, or the address of one, ``"module:object"``.',
    )
    num_hypotheses: int | None = rule(None, "K; a named class has its own default, 8.")
    num_labels: int | None = rule(
        None,
        "M; a named class has its own default, 16 for ``softmax-linear`` and ``dirichlet``.",
    )
    context_dim: int | None = rule(
        None,
        "d; a named class has its own default, 4 for ``softmax-linear`` and 1 for the others.",
    )
    class_seed: int = rule(0, "seed of a random class.")
    hypotheses_kwargs: Mapping[str, Any] | None = rule(None, "further options of a named class.")
    channel: str | Channel = rule(
        "laplace-single",
        'the channel by which users privatize: a name, ``"module:Object"``, or a Channel.',
    )
    channel_kwargs: Mapping[str, Any] | None = rule(None, "further options of a named channel.")
    epsilon: float | None = rule(
        None, "privacy level; by default 1 for a named channel, and a Channel's own."
    )
    delta: float | None = rule(
        None, "by default 0 for a named channel, as all pure channels need, and a Channel's own."
    )
    horizon: int | None = rule(
        None, "T; by default 1000, and the number of rows where the truth is replayed."
    )
    nature: str | Nature | None = rule(
        None,
        'source of the contexts: a name or a Nature; ``"iid"`` by default. Fitted classifiers have no '
        "default: their contexts must be like those they were fitted on.",
    )
    nature_kwargs: Mapping[str, Any] | None = rule(None, "further options of a named nature.")
    truth: object = rule(
        "uniform",
        'distribution of the labels: ``"uniform"`` for a member drawn each episode, its index, another '
        'name (``"mixture"``, ``"contaminated"``, ``"switching"``, ``"replay"``), a row of M '
        "probabilities, a callable from contexts, a fitted classifier, or a Truth.",
    )
    truth_kwargs: Mapping[str, Any] | None = rule(None, "further options of a named truth.")
    observe_candidates: bool = rule(False, "show the candidates ``f_j(x_t)`` in the observations.")
    redraw_hypotheses: bool = rule(
        False,
        "draw a new class of the named family in each episode; needs ``observe_candidates``.",
    )
    batch: int = rule(
        1,
        "number of users who answer under one public posterior, which advances when the batch is "
        "complete. Matters where a channel or nature is adaptive.",
    )
    losses: Sequence[str] = rule(
        DEFAULT_LOSSES,
        'names of the losses in info, such as ``["tv", "hellinger"]``; the KL is always there.',
    )
    reveal: bool = rule(
        False,
        "put the truth, its distribution and the labels into info. For debugging and analysis only.",
    )
    max_loss: float = rule(100.0, "cap of the KL in the reward, which is always finite.")

    def __post_init__(self) -> None:
        """Check every value that no party checks."""
        if self.horizon is not None:
            validation.whole("horizon (T)", self.horizon, least=2)
        validation.positive("max_loss", self.max_loss)
        for name in ("observe_candidates", "reveal", "redraw_hypotheses"):
            validation.flag(name, getattr(self, name))
        validation.whole("batch", self.batch, least=1)
        validation.seed("class_seed", self.class_seed)
        loss_names(self.losses)
        for party in PARTY_RULES:
            validation.options_dict(f"{party}_kwargs", getattr(self, f"{party}_kwargs"))

    @classmethod
    def of(cls, rules: object, name: str = "rules") -> Self:
        """Rules of a dict or of other Rules, the argument ``name`` of a public call.

        Raises:
            TypeError: for an unknown rule, naming the nearest.

        Example:
            >>> Rules.of({"horizn": 10})
            Traceback (most recent call last):
            ...
            TypeError: unexpected keyword argument 'horizn'; did you mean 'horizon'? Known: hypotheses, ...
        """
        if isinstance(rules, cls):
            return rules
        if isinstance(rules, Rules):
            given = rules.given
        else:
            validation.instance(
                name, rules, Mapping, f"a dict of what gym.make({cls.env_id!r}, ...) takes"
            )
            given = validation.options_dict(name, rules)
        cls.check_names(given)
        return cls(**given)

    @classmethod
    def sentences(cls) -> dict[str, str]:
        """Meaning of each argument that the environment takes, by name."""
        rules = {declared.name for declared in fields(Rules)}
        left_out = rules - set(cls.takes)
        return {
            declared.name: declared.metadata["sentence"]
            for declared in fields(cls)
            if declared.name not in left_out
        }

    @classmethod
    def check_names(cls, names: Mapping[str, Any]) -> None:
        """Refuse an argument that the environment does not take, and name the nearest that it does."""
        known = list(cls.sentences())
        rules = {declared.name for declared in fields(Rules)}
        for name in names:
            if name in known:
                continue
            if name in rules:
                raise TypeError(
                    f"{cls.env_id} takes no {name!r}: leave it out. It takes: {', '.join(known)}"
                )
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            raise TypeError(f"unexpected keyword argument {name!r}{hint} Known: {', '.join(known)}")

    @cached_property
    def given(self) -> dict[str, Any]:
        """The rules that are not left at their default, as keyword arguments."""
        values = {declared.name: getattr(self, declared.name) for declared in fields(Rules)}
        defaults = {declared.name: declared.default for declared in fields(Rules)}
        return {name: value for name, value in values.items() if not _same(value, defaults[name])}

    @property
    def promise(self) -> dict[str, float]:
        """The channel's epsilon and delta: those given, else a Channel's own, else 1 and 0."""
        promise = {"epsilon": 1.0, "delta": 0.0}
        if isinstance(self.channel, Channel) and self.channel.epsilon < math.inf:
            promise = {"epsilon": self.channel.epsilon, "delta": self.channel.delta}
        return promise | {name: self.given[name] for name in promise if name in self.given}

    @property
    def rounds(self) -> int | None:
        """T, or None where only a replayed truth knows its number of rows."""
        if self.horizon is not None:
            return int(self.horizon)
        if isinstance(self.truth, str) and (self.truth == "replay" or self.truth not in TRUTHS.own):
            return None
        return (isinstance(self.truth, Truth) and self.truth.num_rounds) or DEFAULT_HORIZON

    @cached_property
    def key(self) -> str:
        """Identity of the game as one line of JSON: its rules that are not at their default.

        Equivalent rules have the same key, and a new rule leaves the keys of older games as they are.

        Raises:
            TypeError: for a function without a name, and for an object that cannot be pickled.

        Example:
            >>> Rules(horizon=1000, epsilon=2).key
            '{"epsilon": 2.0}'
        """
        described = json.loads(canonical(self._completed()))
        usual = _usual_description()
        unusual = {name: value for name, value in described.items() if value != usual[name]}
        return canonical(unusual)

    def _completed(self) -> dict[str, Any]:
        """All rules, with the defaults that depend on other rules filled in."""
        rules = {declared.name: getattr(self, declared.name) for declared in fields(Rules)}
        for party in PARTY_RULES:
            rules[f"{party}_kwargs"] = rules[f"{party}_kwargs"] or {}

        rules["horizon"] = self.rounds
        rules["max_loss"] = float(self.max_loss)
        rules["losses"] = loss_names(self.losses)
        for name, value in self.promise.items():
            rules[name] = float(value)
        if self.nature is None:
            rules["nature"] = self._default_nature()
        return rules

    def _default_nature(self) -> str | None:
        """Name of the class's default nature; None for a class of other packages, which is not imported."""
        if isinstance(self.hypotheses, str) and self.hypotheses not in HYPOTHESES.own:
            return None
        return getattr(self.hypotheses, "default_nature", "iid")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rules) and (self is other or self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)

    def to_json(self) -> str:
        """The rules that are given, as one line of JSON; a TypeError if a rule is an object."""
        try:
            return json.dumps(plain(self.given), sort_keys=True)
        except TypeError as error:
            raise TypeError(
                f"rules that are stored must be names, numbers and lists ({error}): put models and data into "
                "a module and name them as 'module:object'"
            ) from error

    def scenario(self) -> Scenario:
        """The game that the rules describe; an error says which rule is wrong."""
        from ldp_gym.engine.scenario import Scenario

        return Scenario(self)


@cache
def _usual_description() -> dict[str, Any]:
    """All rules of the default game, as JSON has them."""
    description: dict[str, Any] = json.loads(canonical(Rules()._completed()))
    return description


def takes(
    arguments: Callable[P, R],
) -> Callable[[Callable[[S, R], None]], Callable[Concatenate[S, P], None]]:
    """Let ``__init__(self, arguments)`` take as keywords what ``arguments``, a class of rules, takes.

    ``help()``, ``inspect.signature`` and editors then show every argument with its default.
    """
    made: Any = arguments

    def decorate(init: Callable[[S, R], None]) -> Callable[Concatenate[S, P], None]:
        @functools.wraps(init)
        def construct(self: S, *args: P.args, **kwargs: P.kwargs) -> None:
            made.check_names(kwargs)
            init(self, arguments(*args, **kwargs))

        construct.__doc__ = _list_arguments(made.sentences())
        construct.__signature__ = _signature_of_init(made)  # type: ignore[attr-defined]
        return construct  # type: ignore[return-value]

    return decorate


def _list_arguments(sentences: Mapping[str, str]) -> str:
    """Docstring of a constructor that takes these arguments."""
    wrapper = textwrap.TextWrapper(100, initial_indent=" " * 4, subsequent_indent=" " * 8)
    paragraphs = [wrapper.fill(f"{name}: {sentence}") for name, sentence in sentences.items()]
    described = "\n".join(paragraphs)
    return f"Make it from the rules of a game.\n\nArgs:\n{described}"


def _signature_of_init(arguments: type[Rules]) -> inspect.Signature:
    """Signature of an ``__init__`` that takes what ``arguments`` takes."""
    signature = inspect.signature(arguments)
    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    taken = [
        signature.parameters[name] for name in signature.parameters if name in arguments.sentences()
    ]
    return signature.replace(parameters=[this, *taken])


def canonical(value: Any) -> str:
    """JSON with sorted keys, in which arrays and objects stand as their :func:`describe_object`."""
    return json.dumps(plain(value), sort_keys=True, allow_nan=False, default=describe_object)


def describe_object(value: Any) -> Any:
    """An array, class or object as JSON: shape and hash, address, or class with its options or a hash.

    An object that does not keep all of its constructor's options under their names, or is fitted to data, is
    known by the hash of its pickle.
    """
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        content = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
        return {"shape": list(array.shape), "hash": hashlib.sha256(content).hexdigest()}
    if isinstance(value, type) or inspect.isroutine(value):
        if "<" in value.__qualname__:
            raise TypeError(
                f"{value!r} has no name: put it into a module, and give it as 'module:object'"
            )
        return f"{value.__module__}:{value.__qualname__}"
    kind: Any = type(value)
    address, names = describe_object(kind), sorted(read_signature(kind).parameters)
    if (
        names
        and all(hasattr(value, name) for name in names)
        and not hasattr(value, "predict_proba")
    ):
        return {"class": address, "state": {name: plain(getattr(value, name)) for name in names}}
    try:
        return {"class": address, "state": hashlib.sha256(pickle.dumps(value)).hexdigest()}
    except Exception as error:  # whatever its parts raise
        raise TypeError(
            f"{value!r} cannot be told from others of its class: {summarize(error)}"
        ) from error


def _same(value: object, default: object) -> bool:
    """Return True if a value is the default; an array or a list never is."""
    return value is default or (isinstance(value, str | int | float) and value == default)
