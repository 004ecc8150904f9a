"""Names for hypothesis classes, natures, truths, channels, learners and suites.

Three ways to find a part: the package's own parts stand in a dict beside their code, other packages offer
theirs as entry points in ``pyproject.toml``, and ``"module:Object"`` names anything that can be imported.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ldp_gym.core.errors import BrokenPluginError, summarize

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

PACKAGES = ("ldp_gym", "ldp_agents")
"""Where what comes with this package is."""


class Registry(Mapping[str, Callable[..., T]], Generic[T]):
    """Makers of one kind of thing, by name.

    Args:
        kind: what the makers make, for messages ("channel").
        group: the group of entry points in which other packages offer theirs ("ldp_gym.channels").

    Attributes:
        own: the makers that come with the room, by name; they go before entry points of the same name.

    Example:
        >>> from ldp_gym import NATURES
        >>> "drift" in NATURES
        True
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
        self._taken: dict[str, tuple[Any, tuple[dict[str, inspect.Parameter], bool]]] = {}

    @cached_property
    def _entry_points(self) -> dict[str, EntryPoint]:
        from importlib.metadata import entry_points  # half of what `import ldp_gym` would take

        # Of several by one name the one that comes with this package is meant.
        points = sorted(entry_points(group=self.group), key=lambda point: (point.name, is_own(point.module)))
        return {point.name: point for point in points}

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self.own, *self._entry_points}))

    def __len__(self) -> int:
        return len({*self.own, *self._entry_points})

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self._entry_points

    def __repr__(self) -> str:
        return f"<registry of {self.group}: {', '.join(self)}>"

    def names(self) -> list[str]:
        """Every known name."""
        return list(self)

    def __getitem__(self, name: str) -> Callable[..., T]:
        if not isinstance(name, str):
            raise TypeError(f"a {self.kind} goes by a name, got {name!r} of type {type(name).__name__}")
        if name in self:
            return self.get(name)
        if ":" in name:
            maker: Callable[..., T] = import_object(name, self.kind)
            return maker
        raise self._unknown(name)

    def get(self, name: str, default: Any = None) -> Any:
        """The maker of that name, or the default if no entry point has it, as of any mapping."""
        if name in self.own:
            return self.own[name]
        return load(self._entry_points[name], self.kind) if name in self else default

    def _unknown(self, name: str) -> ValueError:
        close = difflib.get_close_matches(name, self, n=1, cutoff=0.5)
        hint = f"; did you mean {close[0]!r}?" if close else "."
        return ValueError(
            f"unknown {self.kind} {name!r}{hint} Known: {', '.join(self)}. Your own goes by 'module:Object'."
        )

    def class_of(self, name: str) -> type[T]:
        """The class of that name, to read what it declares.

        Raises:
            TypeError: if something else makes it, which declares nothing.
        """
        maker = self[name]
        if not isinstance(maker, type):
            raise TypeError(f"the {self.kind} {name!r} must be a class, got {maker!r}")
        return maker

    def package_of(self, name: str) -> str:
        """The package, or module outside of any, that offers ``name``; it is not imported for it."""
        if name not in self and ":" not in name:
            raise self._unknown(name)
        if name in self.own:
            return str(self.own[name].__module__).partition(".")[0]
        module = self._entry_points[name].module if name in self else name.partition(":")[0]
        return module.partition(".")[0]

    def is_builtin(self, name: str) -> bool:
        """Whether what goes by ``name`` comes with this package; it is not imported for it."""
        return is_own(self.package_of(name))

    def makes(self, name: str) -> bool:
        """Whether ``name`` stands for a class or a function that makes things; otherwise it is a thing."""
        found = self[name]
        return isinstance(found, type) or _is_function(found)

    def defaults(self, name: str) -> dict[str, Any]:
        """The options of ``name`` that have a default, with it; none if ``name`` stands for a made thing."""
        if not self.makes(name):
            return {}
        parameters, _ = self._parameters(name)
        return {p.name: p.default for p in parameters.values() if p.default is not p.empty}

    def build(self, name: str, game_parameters: Mapping[str, Any], options: Mapping[str, Any]) -> T:
        """Make ``name`` from the ``options`` a user gave and those ``game_parameters`` that it takes.

        Raises:
            TypeError: for an option that the maker does not take, listing those it does, that the game
                decides, or that is missing.
        """
        maker = self[name]
        parameters, anything = self._parameters(name)
        for option in options:
            if option in game_parameters:
                raise TypeError(
                    f"the game decides {option!r}, it is not an option of {self.kind} {name!r}: "
                    f"the game has {option}={game_parameters[option]!r}"
                )
            if option not in parameters and not anything:
                takes = ", ".join(known for known in parameters if known not in game_parameters) or "none"
                raise TypeError(f"{self.kind} {name!r} takes no option {option!r}; its options: {takes}")
        taken = {key: value for key, value in game_parameters.items() if anything or key in parameters}
        for p in parameters.values():
            if p.default is p.empty and p.name not in {**taken, **options}:
                raise TypeError(f"{self.kind} {name!r} needs the option {p.name!r}")
        return maker(**{**taken, **options})

    def takes(self, name: str, option: str) -> bool:
        """Whether ``name`` is made with such an option."""
        parameters, anything = self._parameters(name)
        return anything or option in parameters

    def _parameters(self, name: str) -> tuple[dict[str, inspect.Parameter], bool]:
        maker = self[name]
        if not callable(maker):
            raise TypeError(f"the {self.kind} {name!r} must be a class or a function, got {maker!r}")
        known = self._taken.get(name)
        if known is not None and known[0] is maker:  # reading a signature takes an eighth of gym.make's time
            return known[1]
        try:
            taken = _parameters(maker)
        except ValueError as error:
            raise TypeError(f"the {self.kind} {name!r} does not say what it takes: {error}") from error
        self._taken[name] = maker, taken
        return taken


def is_builtin(maker: Any) -> bool:
    """Whether a class, or a function that makes things, comes with this package."""
    return is_own(str(getattr(maker, "__module__", "")))


def is_own(address: str) -> bool:
    """Whether a module, or something in one, comes with this package."""
    return address.partition(".")[0] in PACKAGES


def load(point: EntryPoint, kind: str) -> Any:
    """What an entry point names.

    Raises:
        BrokenPluginError: if it cannot be imported, whatever its module raises.
    """
    try:
        return point.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        where = point.dist.name if point.dist is not None else point.module
        raise BrokenPluginError(
            f"{kind} {point.name!r} of {where} cannot be loaded: {summarize(error)}"
        ) from error


def describe(found: Any) -> str:
    """The first sentence of something's documentation, as it reads on a terminal."""
    line = " ".join((inspect.getdoc(found) or "").partition("\n\n")[0].split("\n"))
    return re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"\1", line).replace("``", "")


def _parameters(maker: Callable[..., Any]) -> tuple[dict[str, inspect.Parameter], bool]:
    """What a maker takes by name, and whether it takes anything else too.

    A class that takes ``**options`` hands them on to its base: what that takes, it takes.
    """
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


def import_object(address: str, kind: str) -> Any:
    """What ``"module:object"`` names.

    Raises:
        ValueError: if there is no such module or object.
    """
    module, _, attribute = address.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"cannot import {kind} {address!r}: {error}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a module may raise anything, SystemExit too
        raise ValueError(f"cannot import {kind} {address!r}: {summarize(error)}") from error


def is_address(value: object) -> bool:
    """Whether a value is of the form ``"module:object"``.

    Example:
        >>> is_address("package.module:rows"), is_address("replay"), is_address("a: b"), is_address([1, 2])
        (True, False, False, False)
    """
    if not isinstance(value, str):
        return False
    module, colon, attribute = value.partition(":")
    return bool(colon) and attribute.isidentifier() and all(map(str.isidentifier, module.split(".")))


def addresses_in(value: object) -> list[str]:
    """Every ``"module:object"`` in dicts and lists: a file may not name code, so its reader asks here.

    Example:
        >>> addresses_in({"truth": "replay", "truth_kwargs": {"labels": "mine:rows"}})
        ['mine:rows']
    """
    if isinstance(value, Mapping):
        value = [*value.keys(), *value.values()]
    if isinstance(value, list | tuple):
        return [found for item in value for found in addresses_in(item)]
    return [value] if isinstance(value, str) and is_address(value) else []


def resolve(value: Any, kind: str) -> Any:
    """The data that ``"module:object"`` names; a function is called for it. Anything else is itself.

    Example:
        >>> resolve("string:digits", "labels"), resolve([1, 2], "labels")
        ('0123456789', [1, 2])
    """
    if not is_address(value):
        return value
    found = import_object(value, kind)
    return found() if _is_function(found) else found


def _is_function(found: Any) -> bool:
    """Whether it is a function, perhaps with a cache around it."""
    return inspect.isfunction(inspect.unwrap(found))
