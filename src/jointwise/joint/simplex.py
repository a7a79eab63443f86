"""Probabilities as arrays: checked, and as logarithms."""

from __future__ import annotations

import numpy as np

from jointwise._typing import FloatArray
from jointwise.exceptions import InputError

# How far a sum of probabilities may be from one before it is refused rather than rescaled.
SIMPLEX_TOLERANCE = 1e-6
ROUNDING = 1e-13


def log(values: FloatArray) -> FloatArray:
    """Return logarithms of probabilities, -inf for zero.

    >>> log(np.array([0.0, 1.0])).tolist()
    [-inf, 0.0]
    """
    with np.errstate(divide="ignore"):  # log 0 = -inf is meant: an impossible component or state
        return np.asarray(np.log(values))


def simplex(values: FloatArray, name: str, ndim: int, axis: int = 0) -> FloatArray:
    """Return a read-only copy whose sums along ``axis`` are one, or raise an error that says what is wrong.

    What cannot be written to and is right already is returned as it is: mixtures of wide tables are large.

    >>> simplex([[0.5, 1.0], [0.5, 0.0]], "coefficients", 2)
    array([[0.5, 1. ],
           [0.5, 0. ]])
    """
    is_locked = isinstance(values, np.ndarray) and values.base is None and not values.flags.writeable
    try:
        array = np.asarray(values, np.float64) if is_locked else np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be an array of numbers: {error}.") from error
    if array.ndim != ndim or array.size == 0:
        raise InputError(f"{name} must be a non-empty array of {ndim} dimension(s), got shape {array.shape}.")
    if not ((array >= 0) & (array <= 1 + SIMPLEX_TOLERANCE)).all():
        raise InputError(f"{name} must hold numbers from 0 to 1, got {array.min()} to {array.max()}.")
    total = array.sum(axis=axis, keepdims=True)
    if (np.abs(total - 1) > SIMPLEX_TOLERANCE).any():
        where = "column" if axis == 0 else "row"
        raise InputError(f"{name} must sum to one in each {where}, got sums from {total.min()} to {total.max()}.")
    # a sum that is one but for rounding is left alone, so that a file read back gives the same bits
    scale = np.where(np.abs(total - 1) < ROUNDING, 1.0, total)
    if (scale != 1).any():
        array = array / scale
    array.flags.writeable = False
    return array
