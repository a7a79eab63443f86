"""Checks of arguments, with messages that say what was expected and what was given."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from difflib import get_close_matches
from numbers import Integral, Real
from pathlib import Path
from reprlib import Repr
from typing import TYPE_CHECKING, Any

import numpy as np

from jointwise.exceptions import FileFormatError, InputError, JointwiseError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jointwise._typing import AnyArray, FloatArray

SHOWN = 10  # names that a message lists before it is cut short
LONGEST = 60  # most characters of a name or value in a message
LONGEST_TREE = 300  # most characters of a list, tuple, set or mapping in a message
LONGEST_CAUSE = 500  # most characters that another error adds to a message

# Errors that building an object from malformed data may raise.
MALFORMED = (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, RecursionError)


class _Short(Repr):
    """`repr` that leaves out the middle of a long text."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = LONGEST
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdict = SHOWN
        self.maxlevel = 3

    def repr_int(self, x: int, level: int) -> str:
        # Python refuses to write an integer of more than some thousand digits
        return super().repr_int(x, level) if abs(x) < 10**LONGEST else f"<an integer of {x.bit_length()} bits>"


_SHORT = _Short()


def shown(value: object) -> str:
    """Return a name or a value as text for a message, cut short if it is long.

    >>> shown("age"), shown(3.5), len(shown("a" * 1_000_000))
    ("'age'", '3.5', 60)
    """
    return _cut(_SHORT.repr(value), LONGEST_TREE)


def cause(error: BaseException) -> str:
    """Return the message of an error, without its full stop and cut short, to end another message with.

    >>> cause(ValueError("not a number."))
    'not a number'
    """
    if isinstance(error, KeyError) and not isinstance(error, JointwiseError):
        return f"{shown(error.args[0] if error.args else None)} is not there"
    return _cut(str(error).rstrip("."), LONGEST_CAUSE)


def _cut(text: str, longest: int) -> str:
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half]} ... {text[-half:]}"


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Context manager or decorator that turns what malformed data raises into a FileFormatError.

    >>> with reading("a pair"):
    ...     first, second = [1]
    Traceback (most recent call last):
    jointwise.exceptions.FileFormatError: Not a pair: not enough values to unpack (expected 2, got 1).
    """
    try:
        yield
    except FileFormatError:
        raise  # a part has reported it already
    except MALFORMED as error:
        raise FileFormatError(f"Not {what}: {cause(error)}.") from error


def listed(items: Iterable[Any], limit: int = SHOWN) -> str:
    """Return the first `limit` items as text, separated by commas.

    >>> listed(["a", "b", "c"], limit=2)
    "'a', 'b', ... (3 in all)"
    """
    items = list(items)
    text = ", ".join(shown(item) for item in items[:limit])
    return text if len(items) <= limit else f"{text}, ... ({len(items)} in all)"


def unknown_name(what: str, name: object, known: Iterable[Any]) -> UnknownNameError:
    """Return the error for an unknown name; it lists the known names and suggests the closest.

    >>> str(unknown_name("variable", "agee", ["age", "sex"]))
    "Unknown variable 'agee'; did you mean 'age'? Known: 'age', 'sex'."
    """
    known = list(known)
    # the beginnings of names suffice, and long names would take long to compare
    close = get_close_matches(str(name)[:LONGEST], [str(item)[:LONGEST] for item in known], n=1)
    hint = f"; did you mean {shown(close[0])}? " if close else ". "
    return UnknownNameError(f"Unknown {what} {shown(name)}{hint}Known: {listed(known)}.")


def check_choice(argument: str, value: object, choices: Iterable[str]) -> None:
    """Raise unless a value is one of the choices."""
    choices = [str(choice) for choice in choices]
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"`{argument}` must be one of {listed(choices)}; got {shown(value)}.")


def check_integer(argument: str, value: object, minimum: int) -> int:
    """Return an integer that is at least `minimum`; booleans are refused."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise InputError(f"`{argument}` must be an integer of at least {minimum}; got {shown(value)}.")
    return int(value)


def check_real(argument: str, value: object) -> float:
    """Return a finite real number as a float."""
    if isinstance(value, bool) or not isinstance(value, Real) or not np.isfinite(float(value)):
        raise InputError(f"`{argument}` must be a finite number; got {shown(value)}.")
    return float(value)


def check_names(argument: str, value: object) -> None:
    """Raise unless a value is a sequence or set of names; a single string is a common slip."""
    if isinstance(value, str) or not isinstance(value, Sequence | AbstractSet):
        raise InputError(f"`{argument}` must be a list of column names; got {value!r}.")


def check_weights(sample_weight: object, n_rows: int) -> FloatArray | None:
    """Return row weights as float64 of shape (n_rows,), or None if there are none."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"`sample_weight` must hold numbers: {cause(error)}.") from error
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise InputError(
            f"`sample_weight` must have one number for each of the {n_rows} rows; got shape {weights.shape}."
        )
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise InputError("`sample_weight` must hold finite numbers that are not negative.")
    with np.errstate(over="ignore"):  # reported below
        total = weights.sum()
    if not np.isfinite(total):
        raise InputError("`sample_weight` must have a finite sum; divide the weights by their largest.")
    return weights


def read_only(array: Any, dtype: Any = None) -> AnyArray:
    """Return a read-only array with the same values; the caller's own array stays writable."""
    given = np.asarray(array, dtype=dtype)
    view = given.copy() if given is array and given.flags.writeable else given.view()
    view.flags.writeable = False
    return view


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn, with the first line outside this package as the place, however deep inside it the cause was found."""
    root, frame, level = str(Path(__file__).parent), inspect.currentframe(), 1
    while frame is not None and frame.f_code.co_filename.startswith(root):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
