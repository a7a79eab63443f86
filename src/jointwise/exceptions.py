"""Errors and warnings. Each error also derives from the built-in a caller would expect."""


class JointwiseError(Exception):
    """Base of every error raised on purpose by this package."""


class InputError(JointwiseError, ValueError):
    """An argument or a table does not fit what was asked of it."""


class CellTypeError(InputError, TypeError):
    """A cell, or a whole column, has a type that is not a number, text, a boolean or a date."""


class UnknownNameError(JointwiseError, KeyError):
    """A variable, category or option that is not there; the message lists those that are."""

    def __str__(self) -> str:  # KeyError would show the message in quotes
        return str(self.args[0]) if self.args else ""


class ImpossibleEventError(JointwiseError, ValueError):
    """The event conditioned on has probability zero."""


class RankError(InputError):
    """The number of components is more than the pairwise marginals can hold."""


class FileFormatError(JointwiseError, ValueError):
    """A file is not a jointwise model, or is damaged, truncated or of a newer version."""


class DatasetError(JointwiseError, OSError):
    """A data set is neither on disk nor within reach, or its file is not the published one."""


class MissingDependencyError(JointwiseError, ImportError):
    """An optional package is needed; the message says how to install it."""


class DeviceError(JointwiseError, RuntimeError):
    """A device was asked for that is not there."""


class UnseenCategoryWarning(UserWarning):
    """A category that was not there when the model was fitted is treated as missing, or as impossible in a density."""


class LeftOutWarning(UserWarning):
    """Columns that only name the rows were left out of a fit."""


class RareEventWarning(UserWarning):
    """What is conditioned on is next to impossible under the density, so the answer extrapolates."""


class MisfitWarning(UserWarning):
    """A fitted model answers some questions far from what rows say; the message names columns and what to do."""


class StorageError(JointwiseError, OSError):
    """A file that a fit needs for its own use could not be made, written or read."""


class ClusterError(JointwiseError, RuntimeError):
    """The cluster that holds the rows was lost, or could not do its part of a fit."""
