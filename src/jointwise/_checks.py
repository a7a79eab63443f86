"""Checks of arguments, with messages that say what was expected and what came."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from difflib import get_close_matches
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from jointwise.exceptions import InputError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jointwise._typing import AnyArray, FloatArray

SHOWN = 10  # names listed in a message before it is cut short


def listed(items: Iterable[Any], limit: int = SHOWN) -> str:
    """Write items one after the other, the first `limit` of them.

    >>> listed(["a", "b", "c"], limit=2)
    "'a', 'b', ... (3 in all)"
    """
    items = list(items)
    text = ", ".join(repr(item) for item in items[:limit])
    return text if len(items) <= limit else f"{text}, ... ({len(items)} in all)"


def unknown_name(what: str, name: object, known: Iterable[Any]) -> UnknownNameError:
    """Make the error for a name that is not there: lists those that are and the closest one.

    >>> str(unknown_name("variable", "agee", ["age", "sex"]))
    "Unknown variable 'agee'; did you mean 'age'? Known: 'age', 'sex'."
    """
    known = list(known)
    close = get_close_matches(str(name), [str(item) for item in known], n=1)
    hint = f"; did you mean {close[0]!r}? " if close else ". "
    return UnknownNameError(f"Unknown {what} {name!r}{hint}Known: {listed(known)}.")


def check_choice(argument: str, value: object, choices: Iterable[str]) -> None:
    """Refuse a value that is not one of the choices."""
    choices = [str(choice) for choice in choices]
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"`{argument}` must be one of {listed(choices)}; got {value!r}.")


def check_integer(argument: str, value: object, minimum: int) -> int:
    """Return a whole number that is at least `minimum`; booleans are not numbers here."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise InputError(f"`{argument}` must be an integer of at least {minimum}; got {value!r}.")
    return int(value)


def check_real(argument: str, value: object) -> float:
    """Return a finite real number as a float."""
    if isinstance(value, bool) or not isinstance(value, Real) or not np.isfinite(float(value)):
        raise InputError(f"`{argument}` must be a finite number; got {value!r}.")
    return float(value)


def check_names(argument: str, value: object) -> None:
    """Refuse what is no sequence of names; one name by itself is a common slip."""
    if isinstance(value, str) or not isinstance(value, Sequence | AbstractSet):
        raise InputError(f"`{argument}` must be a list of column names; got {value!r}.")


def check_weights(sample_weight: object, n_rows: int) -> FloatArray | None:
    """Return row weights as float64 of shape (n_rows,), or None where none were given."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"`sample_weight` must hold numbers: {error}.") from error
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise InputError(
            f"`sample_weight` must have one number for each of the {n_rows} rows; got shape {weights.shape}."
        )
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise InputError("`sample_weight` must hold finite numbers that are not negative.")
    with np.errstate(over="ignore"):  # told below
        total = weights.sum()
    if not np.isfinite(total):
        raise InputError("`sample_weight` must have a finite sum; divide the weights by their largest.")
    return weights


def read_only(array: Any, dtype: Any = None) -> AnyArray:
    """Return the array as one that cannot be written to; the caller's own array stays writable."""
    given = np.asarray(array, dtype=dtype)
    view = given.copy() if given is array and given.flags.writeable else given.view()
    view.flags.writeable = False
    return view
