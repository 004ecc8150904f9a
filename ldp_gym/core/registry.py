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
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

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
        """Make a registry without parts; modules add theirs to :attr:`own`."""
        self.kind = kind
        self.group = group
        self.own: dict[str, Callable[..., T]] = {}

    @cached_property
    def _points(self) -> dict[str, EntryPoint]:
        """Entry points of other packages by name; loading that of ``ldp_agents`` fills :attr:`own`."""
        from importlib.metadata import entry_points  # it would double the time of `import ldp_gym`

        points = {point.name: point for point in entry_points(group=self.group)}
        ours = [name for name, point in points.items() if _top(point.module) in PACKAGES]
        for name in ours:
            load_entry_point(points.pop(name), self.kind)
        return points

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._points, *self.own}))

    def __len__(self) -> int:
        return len({*self._points, *self.own})

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in {*self._points, *self.own}

    def __getitem__(self, name: str) -> Callable[..., T]:
        """Class or function that makes the part of this name, or of an address ``module:object``."""
        if not isinstance(name, str):
            raise TypeError(
                f"a {self.kind} goes by a name, got {name!r} of type {type(name).__name__}"
            )
        is_registered = name in self  # this fills `own`
        if name in self.own:
            return self.own[name]
        if is_registered:
            maker: Callable[..., T] = load_entry_point(self._points[name], self.kind)
            return maker
        if is_address(name):
            return import_object(name, self.kind)

        nearest = difflib.get_close_matches(name, self, n=1, cutoff=0.5)
        hint = "."
        if nearest:
            hint = f"; did you mean {nearest[0]!r}?"
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
        is_registered = name in self  # this fills `own`
        if name in self.own:
            return _top(self.own[name].__module__)
        if is_registered:
            return _top(self._points[name].module)
        if not is_address(name):
            self[name]  # an unknown name is an error
        return _top(name)

    def makes(self, name: str) -> bool:
        """Tell if ``name`` is a class or a function; otherwise it is a finished part."""
        part = self[name]
        return isinstance(part, type) or _is_function(part)

    def build(self, name: str, game_parameters: Mapping[str, Any], options: Mapping[str, Any]) -> T:
        """Make a part from the user's ``options`` and those ``game_parameters`` that it takes.

        A game parameter that is None is left to the part.

        Raises:
            TypeError: for an option that the game decides or that the part does not take, and if a required
                one is missing.
        """
        signature = self._parameters(name)
        decided = {key: value for key, value in game_parameters.items() if value is not None}
        for option in options:
            if option in decided:
                raise TypeError(
                    f"the game decides {option!r}, it is not an option of {self.kind} {name!r}: "
                    f"the game has {option}={decided[option]!r}"
                )
            if not signature.takes(option):
                own_options = [key for key in signature.parameters if key not in game_parameters]
                known = ", ".join(own_options) or "none"
                raise TypeError(
                    f"{self.kind} {name!r} takes no option {option!r}; its options: {known}"
                )

        taken = {key: value for key, value in decided.items() if signature.takes(key)}
        arguments = {**taken, **options}
        for parameter in signature.parameters.values():
            is_required = parameter.default is parameter.empty
            if is_required and parameter.name not in arguments:
                raise TypeError(f"{self.kind} {name!r} needs the option {parameter.name!r}")
        return self[name](**arguments)

    def takes(self, name: str, option: str) -> bool:
        """Tell if the class or function of that name takes the option."""
        return self._parameters(name).takes(option)

    def _parameters(self, name: str) -> Signature:
        """Parameters of the class or function of that name."""
        maker = self[name]
        if not callable(maker):
            raise TypeError(
                f"the {self.kind} {name!r} must be a class or a function, got {maker!r}"
            )
        return read_signature(maker)


def _signatures_of(kind: type) -> list[inspect.Signature]:
    """Signatures of the ``__init__`` methods of a class and its bases, without ``self``."""
    bases = kind.__mro__[:-1]  # the last one is object, which takes nothing
    signatures = []
    for base in bases:
        if "__init__" in vars(base):
            signature = inspect.signature(vars(base)["__init__"])
            _self, *parameters = signature.parameters.values()
            signatures.append(signature.replace(parameters=parameters))
    return signatures


class Signature(NamedTuple):
    """Parameters of a class or function.

    Attributes:
        parameters: parameters that can be given by keyword, by name.
        takes_any: True if it takes keywords of any other name too.
    """

    parameters: dict[str, inspect.Parameter]
    takes_any: bool

    def takes(self, option: str) -> bool:
        """Tell if it takes a keyword of this name."""
        return self.takes_any or option in self.parameters


@lru_cache(maxsize=256)  # reading a signature takes an eighth of gym.make's time
def read_signature(maker: Callable[..., Any]) -> Signature:
    """Read the parameters of a class or function.

    The ``__init__`` of a class that takes ``**options`` is assumed to hand these on to that of its base,
    whose parameters are then added.
    """
    if isinstance(maker, type):
        signatures = _signatures_of(maker)
    else:
        signatures = [inspect.signature(maker)]
    by_name: dict[str, inspect.Parameter] = {}
    for signature in signatures:
        parameters = signature.parameters.values()
        for parameter in parameters:
            if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                by_name.setdefault(parameter.name, parameter)
        hands_on = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
        if not hands_on:
            return Signature(by_name, takes_any=False)
    return Signature(by_name, takes_any=bool(signatures))


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
        where = point.module
        if point.dist is not None:
            where = point.dist.name
        raise BrokenPluginError(
            f"{kind} {point.name!r} of {where} cannot be loaded: {summarize(error)}"
        ) from error


def first_sentence(found: Any) -> str:
    """First sentence of an object's docstring, as plain text."""
    docstring = inspect.getdoc(found) or ""
    first_paragraph, _, _ = docstring.partition("\n\n")
    line = " ".join(first_paragraph.split("\n"))
    # A reference such as :class:`~package.Name` becomes Name.
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
    module, _, attribute = value.partition(":")  # without a colon the attribute is empty
    names = [*module.split("."), attribute]
    return all(name.isidentifier() for name in names)


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
    """Data that ``"module:object"`` names: the object, or what it returns if it is a function.

    Any other value is returned as it is.

    Args:
        value: the address, or another value.
        kind: what the data are, for an error.
    """
    if not is_address(value):
        return value
    named = import_object(value, kind)
    if _is_function(named):
        return named()
    return named


def plain(value: Any) -> Any:
    """Return a value in JSON's types, also within dicts and lists.

    Arrays and tuples become lists, and NumPy's numbers become Python's. Arrays that are too large to be
    lists, and other objects, are returned as they are.

    Example:
        >>> plain({"rate": np.float64(0.5), "labels": np.array([1, 2])})
        {'rate': 0.5, 'labels': [1, 2]}
    """
    if isinstance(value, np.ndarray) and value.size <= _MOST_LISTED:
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if type(value) in (list, tuple):  # a subclass, such as a NamedTuple, means something else
        return [plain(item) for item in value]
    return value


def _is_function(found: Any) -> bool:
    """Tell if an object is a function, perhaps with a cache around it."""
    return inspect.isfunction(inspect.unwrap(found))
