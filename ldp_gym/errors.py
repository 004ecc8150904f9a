"""Every exception and warning of the package."""


class IncompatibleChannelError(ValueError):
    """The channel does not fit: a learner cannot read it, or it is not made for the game."""


class NoPrivacyWarning(UserWarning):
    """A channel that reveals the labels is in use."""


class DamagedStoreError(RuntimeError):
    """The file with the results cannot be read. It is left as it is."""


class LearnerFailedError(RuntimeError):
    """A learner in its own process has failed; the message has its traceback, or what became of it."""
