"""Every exception and warning of the package."""


class IncompatibleChannelError(ValueError):
    """The channel does not fit: a learner cannot read it, or it is not made for the game."""


class NoPrivacyWarning(UserWarning):
    """A channel that reveals the labels is in use."""


class BrokenPromiseWarning(UserWarning):
    """A channel does not keep the eps or delta that it promises: its results are no private learner's."""


class BrokenPromiseError(ValueError):
    """The same, where only channels that keep their promise may play."""


class ChannelFailedError(RuntimeError):
    """A channel does not keep the contract, such as messages that follow the density it declares."""


class DamagedStoreError(RuntimeError):
    """The file with the results cannot be read. It is left as it is."""


class LearnerFailedError(RuntimeError):
    """A learner in its own process has failed; the message has its traceback, or what became of it."""
