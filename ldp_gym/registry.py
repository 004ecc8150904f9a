"""Names for hypothesis classes, natures, channels and learners.

One way to look a thing up by name: what the package registers itself, what an installed package offers
through an entry point, or ``"module:Object"`` for anything that can be imported.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
Made = TypeVar("Made", bound=Callable[..., Any])


class Registry(Generic[T]):
    """Makers of one kind of thing, by name.

    Args:
        kind: what the makers make, for messages ("channel").
        group: the entry-point group in which other packages offer theirs ("ldp_gym.channels").

    Example:
        >>> shapes = Registry("shape")
        >>> @shapes.register("square")
        ... class Square:
        ...     def __init__(self, side, colour="red"):
        ...         self.side, self.colour = side, colour
        >>> shapes.build("square", {"side": 2, "weight": 7}, {"colour": "blue"}).colour
        'blue'
        >>> shapes["sqare"]
        Traceback (most recent call last):
        ...
        ValueError: unknown shape 'sqare'; did you mean 'square'? Known: square. ...
    """

    def __init__(self, kind: str, group: str | None = None) -> None:
        self.kind = kind
        self.group = group
        self._makers: dict[str, Callable[..., T]] = {}

    def register(self, name: str) -> Callable[[Made], Made]:
        """Decorator that gives a maker its name."""

        def decorate(maker: Made) -> Made:
            if name in self._makers:
                raise ValueError(f"{self.kind} {name!r} is registered twice")
            self._makers[name] = maker
            return maker

        return decorate

    @cached_property
    def _offered(self) -> dict[str, EntryPoint]:
        from importlib.metadata import entry_points  # half of what `import ldp_gym` would take

        return {point.name: point for point in entry_points(group=self.group)} if self.group else {}

    def names(self) -> list[str]:
        """Every known name: those registered here, then the entry points'."""
        return [*self._makers, *sorted(set(self._offered) - set(self._makers))]

    def __getitem__(self, name: str) -> Callable[..., T]:
        if name in self._makers:
            return self._makers[name]
        if ":" in name:
            return _import(name, self.kind)
        if name in self._offered:
            maker: Callable[..., T] = self._offered[name].load()
            return maker
        close = difflib.get_close_matches(name, self.names(), n=1, cutoff=0.5)
        hint = f"; did you mean {close[0]!r}?" if close else "."
        raise ValueError(
            f"unknown {self.kind} {name!r}{hint} Known: {', '.join(self.names())}. "
            f"Your own goes by 'module:Object'."
        )

    def build(self, name: str, offered: Mapping[str, Any], options: Mapping[str, Any]) -> T:
        """Make ``name`` from the ``options`` a user gave and those ``offered`` facts that it asks for.

        Raises:
            TypeError: for an option that the maker does not take, listing those it does, that is for the game
                to say, or that is missing.
        """
        maker = self[name]
        parameters, anything = _parameters(maker)
        for option in options:
            if option in offered:
                raise TypeError(
                    f"{option!r} is the game's to say, not an option of {self.kind} {name!r}: "
                    f"the game has {option}={offered[option]!r}"
                )
            if option not in parameters and not anything:
                takes = ", ".join(known for known in parameters if known not in offered) or "none"
                raise TypeError(f"{self.kind} {name!r} takes no option {option!r}; its options: {takes}")
        facts = {key: value for key, value in offered.items() if anything or key in parameters}
        for p in parameters.values():
            if p.default is p.empty and p.name not in {**facts, **options}:
                raise TypeError(f"{self.kind} {name!r} needs the option {p.name!r}")
        return maker(**{**facts, **options})

    def takes(self, name: str, option: str) -> bool:
        """Whether ``name`` is made with such an option."""
        parameters, anything = _parameters(self[name])
        return anything or option in parameters


def is_ours(maker: Any) -> bool:
    """Whether a class, or what else makes a party, comes with this package."""
    return maker.__module__.partition(".")[0] in ("ldp_gym", "ldp_agents")


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


def _import(path: str, kind: str) -> Callable[..., Any]:
    module, _, attribute = path.partition(":")
    try:
        found: Callable[..., Any] = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"cannot import {kind} {path!r}: {error}") from error
    return found
