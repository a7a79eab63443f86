"""Errors and warnings. Each error also derives from the built-in a caller would expect."""


class JointwiseError(Exception):
    """Base of every error raised on purpose by this package."""


class InputError(JointwiseError, ValueError):
    """An argument or a table does not fit what was asked of it."""


class CellTypeError(InputError, TypeError):
    """A cell, or a whole column, has a type that is not a number, text, a boolean or a date."""


class UnknownNameError(JointwiseError, KeyError):
    """A variable, category or option does not exist; the message lists those that do."""

    def __str__(self) -> str:  # KeyError would show the message in quotes
        return str(self.args[0]) if self.args else ""


class QuestionError(InputError):
    """A question in the command's language cannot be read; the message shows where.

    >>> print(QuestionError("There is no such variable.", "inc | age > 40", 0))
    There is no such variable.
      inc | age > 40
      ^
    """

    # Characters around the place that are shown of a long question.
    SHOWN = 200

    def __init__(self, sentence: str, text: str, at: int) -> None:
        line = text.replace("\n", " ").replace("\t", " ")
        start = max(at - self.SHOWN // 2, 0) if len(line) > self.SHOWN else 0
        before, after = "..." * (start > 0), "..." * (start + self.SHOWN < len(line))
        line = f"{before}{line[start : start + self.SHOWN]}{after}"
        super().__init__(f"{sentence}\n  {line}\n  {' ' * (len(before) + at - start)}^")


class ImpossibleEventError(JointwiseError, ValueError):
    """The event conditioned on has probability zero."""


class RankError(InputError):
    """The number of components is more than the pairwise marginals can hold."""


class FileFormatError(JointwiseError, ValueError):
    """A file is not a jointwise model, or is damaged, truncated or of a newer version."""


class DatasetError(JointwiseError, OSError):
    """A data set is neither on disk nor can be downloaded, or its file is not the published one."""


class MissingDependencyError(JointwiseError, ImportError):
    """An optional package is needed; the message says how to install it."""


class DeviceError(JointwiseError, RuntimeError):
    """The requested device does not exist."""


class StorageError(JointwiseError, OSError):
    """A file that a fit needs for itself could not be created, written or read."""


class ClusterError(JointwiseError, RuntimeError):
    """The cluster that holds the rows was lost or failed."""


class CovarianceError(InputError):
    """A component of a Gaussian mixture has too few rows, or rows too similar, for a covariance."""


class UnseenCategoryWarning(UserWarning):
    """A category that was absent from the fitted table is treated as missing, or as impossible in a density."""


class LeftOutWarning(UserWarning):
    """Columns that only name the rows were left out of the fit."""


class WeightsWarning(UserWarning):
    """Weights sum to far more or far fewer rows than the table has; the message says how to scale them."""


class RareEventWarning(UserWarning):
    """The event conditioned on is nearly impossible under the density, so the answer extrapolates."""


class DataOnPageWarning(UserWarning):
    """A page to explore a density holds rows of a table, which everybody who has the page can read."""


class MisfitWarning(UserWarning):
    """Some answers of a fitted model are far from what the rows say; the message names columns and what to do."""
