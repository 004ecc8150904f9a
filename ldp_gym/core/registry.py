"""Names for hypothesis classes, natures, truths, channels, learners and suites.

Three ways to find a part: the package's own parts stand in a dict next to their code, other packages offer
theirs as entry points in ``pyproject.toml``, and ``"module:Object"`` names anything that can be imported.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from ldp_gym.core.errors import BrokenPluginError, UntrustedCodeError, summarize

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

PACKAGES = ("ldp_gym", "ldp_agents", "ldp_bench")
"""Import names of this distribution."""

_MOST_LISTED = 100_000
"""Size above which :func:`plain` leaves an array as it is: as a list it would take seconds."""


class Registry(Mapping[str, Callable[..., T]], Generic[T]):
    """Registry of factories for one kind of part, by name.

    Args:
        kind: the kind of part, for messages ("channel").
        group: the group of entry points in which other packages offer theirs ("ldp_gym.channels"). That of
            ``ldp_agents``, which this package may not import, is loaded to register its learners.

    Attributes:
        own: the parts that come with the package; they go before entry points of the same name.

    Example:
        >>> from ldp_gym import NATURES
        >>> NATURES.build("drift", {"context_dim": 2, "horizon": 7}, {"rate": 0.5}).rate
        0.5
        >>> NATURES["dirft"]
        Traceback (most recent call last):
        ...
        ValueError: unknown nature 'dirft'; did you mean 'drift'? Known: adversary, cycle, drift, ...
    """

    def __init__(self, kind: str, group: str) -> None:
        self.kind = kind
        self.group = group
        self.own: dict[str, Callable[..., T]] = {}

    @cached_property
    def _points(self) -> dict[str, EntryPoint]:
        """Entry points of other packages by name; loading that of ``ldp_agents`` fills :attr:`own`."""
        from importlib.metadata import entry_points  # it would double the time of `import ldp_gym`

        points = {point.name: point for point in entry_points(group=self.group)}
        for name in [name for name, point in points.items() if _top(point.module) in PACKAGES]:
            load_entry_point(points.pop(name), self.kind)
        return points

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._points, *self.own}))

    def __len__(self) -> int:
        return len({*self._points, *self.own})

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in {*self._points, *self.own}

    def __getitem__(self, name: str) -> Callable[..., T]:
        if not isinstance(name, str):
            raise TypeError(
                f"a {self.kind} goes by a name, got {name!r} of type {type(name).__name__}"
            )
        if name in self:
            return (
                self.own[name]
                if name in self.own
                else load_entry_point(self._points[name], self.kind)
            )
        if is_address(name):
            return import_object(name, self.kind)
        close = difflib.get_close_matches(name, self, n=1, cutoff=0.5)
        hint = f"; did you mean {close[0]!r}?" if close else "."
        raise ValueError(
            f"unknown {self.kind} {name!r}{hint} Known: {', '.join(self)}. Your own goes by 'module:Object'."
        )

    def get(self, name: str, default: Any = None) -> Any:
        """The maker of a registered name, or ``default``; an address is never imported."""
        if name not in self:
            return default
        return self[name]

    def class_of(self, name: str) -> type[T]:
        """The class of that name, to read its class attributes; a function is a TypeError."""
        maker = self[name]
        if not isinstance(maker, type):
            raise TypeError(f"the {self.kind} {name!r} must be a class, got {maker!r}")
        return maker

    def package_of(self, name: str) -> str:
        """The package, or top-level module, that offers ``name``; it is not imported."""
        if name in self:
            address = self.own[name].__module__ if name in self.own else self._points[name].module
        else:
            address = name if is_address(name) else str(self[name])  # an unknown name raises
        return _top(address)

    def makes(self, name: str) -> bool:
        """Tell if ``name`` is a class or a function; otherwise it is a finished part."""
        found = self[name]
        return isinstance(found, type) or _is_function(found)

    def build(self, name: str, game_parameters: Mapping[str, Any], options: Mapping[str, Any]) -> T:
        """Make a part from the user's ``options`` and those ``game_parameters`` that it takes.

        A game parameter that is None is left to the part.
        """
        parameters, anything = self._parameters(name)
        decided = {key: value for key, value in game_parameters.items() if value is not None}
        for option in options:
            if option in decided:
                raise TypeError(
                    f"the game decides {option!r}, it is not an option of {self.kind} {name!r}: "
                    f"the game has {option}={decided[option]!r}"
                )
            if option not in parameters and not anything:
                takes = (
                    ", ".join(known for known in parameters if known not in game_parameters)
                    or "none"
                )
                raise TypeError(
                    f"{self.kind} {name!r} takes no option {option!r}; its options: {takes}"
                )
        taken = {key: value for key, value in decided.items() if anything or key in parameters}
        for p in parameters.values():
            if p.default is p.empty and p.name not in {**taken, **options}:
                raise TypeError(f"{self.kind} {name!r} needs the option {p.name!r}")
        return self[name](**{**taken, **options})

    def takes(self, name: str, option: str) -> bool:
        """Tell if the class or function of that name takes the option."""
        parameters, anything = self._parameters(name)
        return anything or option in parameters

    def _parameters(self, name: str) -> tuple[dict[str, inspect.Parameter], bool]:
        """Parameters of a name's signature; True if it takes any others too."""
        maker = self[name]
        if not callable(maker):
            raise TypeError(
                f"the {self.kind} {name!r} must be a class or a function, got {maker!r}"
            )
        return read_signature(maker)


@lru_cache(maxsize=256)  # reading a signature takes an eighth of gym.make's time
def read_signature(maker: Callable[..., Any]) -> tuple[dict[str, inspect.Parameter], bool]:
    """Parameters by name; a class that takes ``**options`` takes those of its base too."""
    makers: list[Callable[..., Any]] = [maker]
    if isinstance(maker, type):
        makers = [vars(cls)["__init__"] for cls in maker.__mro__[:-1] if "__init__" in vars(cls)]
    found: dict[str, inspect.Parameter] = {}
    for call in makers:
        parameters = list(inspect.signature(call).parameters.values())
        for p in parameters[1:] if isinstance(maker, type) else parameters:
            if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
                found.setdefault(p.name, p)
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            return found, False
    return found, bool(makers)


def is_builtin(maker: Any) -> bool:
    """Tell if a class or function comes with this package."""
    return _top(str(maker.__module__)) in PACKAGES


def _top(address: str) -> str:
    """Top-level package of ``"package.module:object"``."""
    return address.partition(":")[0].partition(".")[0]


def load_entry_point(point: EntryPoint, kind: str) -> Any:
    """Import the object of an entry point, or raise a BrokenPluginError."""
    try:
        return point.load()
    except (Exception, SystemExit) as error:  # a module may raise anything
        where = point.dist.name if point.dist is not None else point.module
        raise BrokenPluginError(
            f"{kind} {point.name!r} of {where} cannot be loaded: {summarize(error)}"
        ) from error


def first_sentence(found: Any) -> str:
    """First sentence of an object's docstring, as plain text."""
    line = " ".join((inspect.getdoc(found) or "").partition("\n\n")[0].split("\n"))
    return re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"\1", line).replace("``", "")


def import_object(address: str, kind: str) -> Any:
    """Import the object that ``"module:object"`` names, or raise a ValueError."""
    module, _, attribute = address.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (Exception, SystemExit) as error:  # a module may raise anything
        raise ValueError(f"cannot import {kind} {address!r}: {summarize(error)}") from error


def is_address(value: object) -> bool:
    """Tell if a value has the form ``"module:object"``.

    Example:
        >>> is_address("package.module:rows"), is_address("replay"), is_address("a: b"), is_address([1, 2])
        (True, False, False, False)
    """
    if not isinstance(value, str):
        return False
    module, colon, attribute = value.partition(":")
    return (
        bool(colon) and attribute.isidentifier() and all(map(str.isidentifier, module.split(".")))
    )


def addresses_in(value: Any) -> list[str]:
    """List the ``"module:object"`` addresses anywhere in data, keys of dicts included.

    Example:
        >>> addresses_in({"truth": "replay", "truth_kwargs": {"labels": ["mine:y", 3]}})
        ['mine:y']
    """
    if is_address(value):
        return [value]
    if isinstance(value, Mapping):
        items = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple):
        items = list(value)
    else:
        items = []
    return [address for item in items for address in addresses_in(item)]


def refuse_addresses(value: Any, source: str) -> None:
    """Refuse a ``"module:object"`` address anywhere in data that was read from the file ``source``."""
    for address in addresses_in(value):
        raise UntrustedCodeError(
            f"{source} names code, {address!r}, and a file may only name registered parts: register the "
            f"part, or leave it out of the file and give it in Python or on the command line"
        )


def resolve(value: Any, kind: str) -> Any:
    """Data that ``"module:object"`` names, from a function by calling it; other values are returned."""
    if not is_address(value):
        return value
    found = import_object(value, kind)
    return found() if _is_function(found) else found


def plain(value: Any) -> Any:
    """``value`` as JSON has it: arrays as lists and NumPy's numbers as Python's, in dicts and lists too."""
    if isinstance(value, np.ndarray):
        return value.tolist() if value.size <= _MOST_LISTED else value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if type(value) in (list, tuple) else value


def _is_function(found: Any) -> bool:
    """Tell if an object is a function, perhaps with a cache around it."""
    return inspect.isfunction(inspect.unwrap(found))
