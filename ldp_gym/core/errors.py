"""Every exception and warning of the package, and the one way to say that an extra is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gymnasium.error import DependencyNotInstalled

_GYMNASIUM_APPENDS = " was raised from the environment creator"


class ArgumentTypeError(TypeError):
    """An argument of the wrong kind.

    From a TypeError in an environment's constructor Gymnasium makes another of the same class, whose message
    ends with all arguments, whole models and tables included. This class leaves that end out.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message.partition(_GYMNASIUM_APPENDS)[0])


@contextmanager
def keep_messages() -> Iterator[None]:
    """Make an :class:`ArgumentTypeError` of every TypeError, for the constructor of an environment."""
    try:
        yield
    except ArgumentTypeError:
        raise
    except TypeError as error:
        raise ArgumentTypeError(str(error)) from error


class MissingExtraError(ImportError, DependencyNotInstalled):
    """A package of an extra is not installed. The message names both, and the command to install them."""


@contextmanager
def extra(name: str, purpose: str) -> Iterator[None]:
    """Imports that need an extra of this package.

    Args:
        name: of the extra, as pyproject.toml has it.
        purpose: what needs it, in the error.

    Raises:
        MissingExtraError: if a package is missing.

    Example:
        >>> with extra("rl", "training"):
        ...     import no_such_package
        Traceback (most recent call last):
        ...
        ldp_gym.core.errors.MissingExtraError: training needs no_such_package: pip install 'ldp-gym[rl]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "a package").partition(".")[0]
        if package.startswith("ldp_"):
            raise  # a module of ours: no extra brings it
        message = f"{purpose} needs {package}: pip install 'ldp-gym[{name}]'"
        raise MissingExtraError(message, name=package) from error


class IncompatibleChannelError(ValueError):
    """The channel does not fit: a learner cannot read it, or it is not made for the game."""


class NoPrivacyWarning(UserWarning):
    """A channel that reveals the labels is in use."""


class BrokenPromiseWarning(UserWarning):
    """A channel does not keep the eps or delta that it promises: its results are no private learner's."""


class BrokenPromiseError(ValueError):
    """A channel breaks its promise of eps or delta where only channels that keep it may play."""


class ChannelFailedError(RuntimeError):
    """A channel does not keep the contract, such as messages that follow the density it declares."""


class DamagedStoreError(RuntimeError):
    """A file with results cannot be read. It is left as it is."""


class LearnerFailedError(RuntimeError):
    """A learner in its own process has failed; the message has its traceback, or how the process ended."""


class OutsideTrainingWarning(UserWarning):
    """A trained agent plays a game of another kind than it was trained on."""


class BrokenPluginError(ValueError):
    """Another package offers something that cannot be imported."""


class UntrustedCodeError(ValueError):
    """Files, not the user, ask for code to be run."""


def summarize(error: BaseException) -> str:
    """An exception in one line that can be written anywhere.

    Example:
        >>> summarize(ValueError("no  such thing")), summarize(KeyboardInterrupt())
        ('ValueError: no such thing', 'KeyboardInterrupt')
    """
    try:
        said = printable(" ".join(str(error).split()))
    except Exception:  # an exception may be anybody's, and fail to say what it is
        said = ""
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def printable(text: str) -> str:
    r"""Text with control characters and lone surrogates spelled out, new lines and tabs aside.

    Example:
        >>> print(printable("a" + chr(27) + "[2J"))
        a\x1b[2J
    """
    return "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode()
        for char in text
    )
