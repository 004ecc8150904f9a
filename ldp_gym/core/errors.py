"""Exceptions and warnings of the package, and the error for a missing extra."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from gymnasium.error import DependencyNotInstalled


class MissingExtraError(ImportError, DependencyNotInstalled):
    """A package of an extra is not installed; the message has the command that installs it."""


@contextmanager
def extra(name: str, purpose: str) -> Iterator[None]:
    """Turn a failed import into a MissingExtraError that names the extra to install.

    Example:
        >>> with extra("bench", "a report"):
        ...     import no_such_package
        Traceback (most recent call last):
        ...
        ldp_gym.core.errors.MissingExtraError: a report needs no_such_package: pip install 'ldp-gym[bench]'
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
    """The learner cannot read the channel's messages, or the channel does not fit the game."""


class NoPrivacyWarning(UserWarning):
    """A channel that reveals the labels is in use."""


class BrokenPromiseWarning(UserWarning):
    """A channel does not keep the eps or delta that it promises: its results are not private."""


class BlindChannelWarning(UserWarning):
    """A channel tells two hypotheses apart in no round: if one is the truth, risk grows linearly in T."""


class BrokenPromiseError(ValueError):
    """A channel breaks its promise of eps or delta where only channels that keep it may play."""


class DamagedStoreError(RuntimeError):
    """A file with results cannot be read. It is left as it is."""


class LearnerFailedError(RuntimeError):
    """A learner in its own process has failed; the message has its traceback, or how the process ended."""


class MechanismFailedError(RuntimeError):
    """A mechanism under audit has raised an error, hung, or returned messages of several kinds."""


class OutsideTrainingWarning(UserWarning):
    """A trained agent plays a game of another kind than it was trained on."""


class BrokenPluginError(ValueError):
    """A part that another package offers cannot be imported."""


class UntrustedCodeError(ValueError):
    """A file asks for code to be run without the user's trust."""


def summarize(error: BaseException) -> str:
    r"""Describe an exception in one printable line.

    Example:
        >>> summarize(ValueError("two\nlines"))
        'ValueError: two lines'
    """
    message = printable(" ".join(str(error).split()))
    kind = type(error).__name__
    if not message:
        return kind
    return f"{kind}: {message}"


def printable(text: str) -> str:
    r"""Spell out control characters and lone surrogates, new lines and tabs aside.

    Example:
        >>> printable("a name\x1b[2J")
        'a name\\x1b[2J'
    """
    return re.sub(r"[^\n\t]+", lambda part: in_one_line(part[0]), text)


def in_one_line(text: str) -> str:
    r"""Spell out control characters and lone surrogates, with new lines and tabs.

    Example:
        >>> in_one_line("two\nlines")
        'two\\nlines'
    """
    if text.isprintable():
        return text
    spelled = []
    for char in text:
        if char.isprintable():
            spelled.append(char)
        else:
            spelled.append(char.encode("unicode_escape").decode())
    return "".join(spelled)
