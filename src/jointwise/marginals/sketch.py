"""ValueSketch: the distribution of one column of numbers, of bounded size; sketches of parts add up exactly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jointwise._checks import read_only, reading, shown
from jointwise._numerics import ordered_integers
from jointwise.exceptions import FileFormatError, InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jointwise._typing import AnyArray, FloatArray, IntArray

_BLOCK = 2**17  # rows sorted at a time
# Steps that values may be rounded to, coarsest first; `is_integral` covers the step one.
STEPS = (0.5, 0.25, 0.1, 0.05, 0.01, 0.001, 1e-4, 1e-5, 1e-6)
# Largest relative distance of a value from a multiple of its step, and most steps that a value may have.
_STEP_ERROR, _MOST_STEPS = 1e-12, 2.0**31
# A spike holds at least this many rows, this share of all rows, and this multiple of its neighbours' median count.
_SPIKE_ROWS, _SPIKE_SHARE, _SPIKE_FACTOR = 10.0, 0.02, 5.0
_FIELDS = ("keys", "counts", "low", "low_counts", "high", "high_counts")


@dataclass(frozen=True, eq=False)
class ValueSketch:
    """Counts of the values of a column, grouped if there are too many different ones.

    Each float64 is mapped to an integer in the same order. Values whose integers agree in all but the lowest `shift`
    bits form a group, and `shift` is the smallest that leaves at most `LIMIT` groups. So the sketch is exact (`shift`
    0: each group is one value) up to `LIMIT` different values, and otherwise groups values that agree to a relative
    precision. It depends neither on the order of the rows nor on how they were split into sketches that were added.

    A quantile falls in the right group. Its error in rank is therefore at most the share of the rows strictly inside
    that group, at neither end. Its error in value is at most the group's width: less than 2**(shift - 52) of the
    value, for a shift of up to 52.

    Parameters
    ----------
    shift : int
    keys : array of shape (m,)
        The groups' integers, increasing.
    counts : array of shape (m,)
        Rows, or sum of weights, of each group; int64, or float64 with weights.
    low, high : array of shape (m,)
        Smallest and largest value of each group.
    low_counts, high_counts : array of shape (m,)
        Rows with exactly these values.
    is_integral : bool
        Whether all values are whole numbers.
    multiples : tuple of bool
        Whether all values are whole multiples of each of `STEPS`.

    Examples
    --------
    >>> sketch = ValueSketch.of([3.0, 1.0]) + ValueSketch.of([1.0])
    >>> sketch.values, sketch.counts, sketch.quantile(0.5)
    (array([1., 3.]), array([2, 1]), np.float64(1.0))
    """

    LIMIT: ClassVar[int] = 65_536

    shift: int
    keys: IntArray
    counts: AnyArray
    low: FloatArray
    low_counts: AnyArray
    high: FloatArray
    high_counts: AnyArray
    is_integral: bool
    multiples: tuple[bool, ...] = (True,) * len(STEPS)

    def __post_init__(self) -> None:
        for name in _FIELDS:
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @classmethod
    def empty(cls) -> ValueSketch:
        """Return the sketch of no rows."""
        none, zero = np.empty(0), np.empty(0, dtype=np.int64)
        return cls(0, zero, zero, none, zero, none, zero, is_integral=True)

    @classmethod
    def of(cls, values: Any, weights: FloatArray | None = None) -> ValueSketch:
        """Return the sketch of finite numbers of shape (n,), with positive weights if any."""
        values = np.asarray(values, dtype=np.float64) + 0.0  # -0.0 becomes 0.0
        if not np.all(np.isfinite(values)):
            raise InputError("A sketch takes finite numbers only.")
        sketch = cls.empty()
        for start in range(0, len(values), _BLOCK):
            rows = slice(start, start + _BLOCK)
            sketch += cls._of_block(values[rows], None if weights is None else weights[rows])
        return sketch

    @classmethod
    def _of_block(cls, values: FloatArray, weights: FloatArray | None) -> ValueSketch:
        if weights is None:
            distinct, counts = np.unique(values, return_counts=True)
        else:
            distinct, position = np.unique(values, return_inverse=True)
            counts = np.bincount(position, weights, minlength=len(distinct))
        integral = bool(np.all(distinct == np.rint(distinct)))
        keys = _keys(distinct)
        multiples = tuple(_are_multiples(distinct, step) for step in STEPS)
        return _bounded(cls(0, keys, counts, distinct, counts, distinct, counts, integral, multiples))

    def __add__(self, other: object) -> ValueSketch:
        if not isinstance(other, ValueSketch):
            return NotImplemented
        if not len(self.keys) or not len(other.keys):
            return self if len(self.keys) else other
        shift = max(self.shift, other.shift)
        parts = (self._coarser(shift), other._coarser(shift))
        # with `return_index`, unique sorts stably, which is fast on two sorted lists
        both = np.concatenate([part.keys for part in parts])
        keys, _, place = np.unique(both, return_index=True, return_inverse=True)
        where = np.split(place, [len(parts[0].keys)])
        low, high = np.full(len(keys), np.inf), np.full(len(keys), -np.inf)
        for part, at in zip(parts, where, strict=True):
            low[at], high[at] = np.minimum(low[at], part.low), np.maximum(high[at], part.high)
        kind = np.result_type(*(part.counts.dtype for part in parts))
        counts, low_counts, high_counts = np.zeros((3, len(keys)), dtype=kind)
        for part, at in zip(parts, where, strict=True):
            counts[at] += part.counts
            low_counts[at] += np.where(part.low == low[at], part.low_counts, 0)
            high_counts[at] += np.where(part.high == high[at], part.high_counts, 0)
        integral = self.is_integral and other.is_integral
        multiples = tuple(a and b for a, b in zip(self.multiples, other.multiples, strict=True))
        return _bounded(ValueSketch(shift, keys, counts, low, low_counts, high, high_counts, integral, multiples))

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that `json` can write; the keys follow from the values."""
        arrays = {name: getattr(self, name).tolist() for name in _FIELDS if name != "keys"}
        return {"shift": self.shift, "integral": self.is_integral, "multiples": list(self.multiples)} | arrays

    @classmethod
    @reading("a sketch as written by `ValueSketch.to_dict`")
    def from_dict(cls, fields: Mapping[str, Any]) -> ValueSketch:
        """Return the sketch that `to_dict` wrote, checked; raise FileFormatError for anything else.

        >>> sketch = ValueSketch.of([0.5, 2.0, 2.0])
        >>> ValueSketch.from_dict(sketch.to_dict()).counts
        array([1, 2])
        """
        shift, flags = fields["shift"], [fields["integral"], *fields["multiples"]]
        if type(shift) is not int or not 0 <= shift < 64:
            raise FileFormatError(f"The shift of a sketch is an integer from 0 to 63; got {shown(shift)}.")
        if len(flags) != 1 + len(STEPS) or not all(isinstance(flag, bool) for flag in flags):
            raise FileFormatError(f"A sketch says true or false of {1 + len(STEPS)} steps.")
        low, high = (np.asarray(fields[name], dtype=np.float64) for name in ("low", "high"))
        counts = [_counts(fields[name]) for name in ("counts", "low_counts", "high_counts")]
        if low.ndim != 1 or len(low) > cls.LIMIT or {each.shape for each in (high, *counts)} != {low.shape}:
            raise FileFormatError(f"The arrays of a sketch are of one length, at most {cls.LIMIT:,}.")
        keys = _keys(low) >> shift
        apart = np.isfinite([low, high]).all() and (keys[1:] > keys[:-1]).all() and (low <= high).all()
        if not apart or not np.array_equal(keys, _keys(high) >> shift):
            raise FileFormatError("The values of a sketch must be finite, increase, and lie in one group each.")
        if not all(((some > 0) & (some <= counts[0])).all() for some in counts):
            raise FileFormatError("The counts of a sketch must be positive, and those of an end no larger.")
        low_counts, high_counts = counts[1:]
        return cls(shift, keys, counts[0], low, low_counts, high, high_counts, flags[0], tuple(flags[1:]))

    def _coarser(self, shift: int) -> ValueSketch:
        """Return the same rows in coarser groups: neighbours whose keys become equal are merged."""
        if shift == self.shift or not len(self.keys):
            return self
        keys = self.keys >> (shift - self.shift)
        starts = np.concatenate([[0], 1 + np.flatnonzero(keys[1:] != keys[:-1])])
        ends = np.append(starts[1:], len(keys)) - 1
        return replace(
            self,
            shift=shift,
            keys=keys[starts],
            counts=np.add.reduceat(self.counts, starts),
            low=self.low[starts],
            low_counts=self.low_counts[starts],
            high=self.high[ends],
            high_counts=self.high_counts[ends],
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ValueSketch)
            and (self.shift, self.is_integral, self.multiples) == (other.shift, other.is_integral, other.multiples)
            and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in _FIELDS)
        )

    def __hash__(self) -> int:
        return hash((self.shift, len(self.keys), self.n))

    @property
    def n(self) -> float:
        """Number of rows, or sum of weights."""
        return float(self.counts.sum())

    @property
    def exact(self) -> bool:
        """Whether every different value is known."""
        return self.shift == 0

    @property
    def values(self) -> FloatArray:
        """Different values, increasing; their numbers of rows are `counts`. Raises unless `exact`."""
        if not self.exact:
            raise InputError(f"The column has more than {self.LIMIT} different values; not all are kept.")
        return self.low

    @property
    def min(self) -> float:
        """Smallest value."""
        return float(self.low[0])

    @property
    def max(self) -> float:
        """Largest value."""
        return float(self.high[-1])

    def quantile(self, q: Any) -> Any:
        """Return the smallest value v with at least a share q of the rows at or below it.

        It is exact if the sketch is `exact` or v is an end of a group; inside a group it is the middle.
        """
        rank = np.clip(np.asarray(q, dtype=np.float64), 0.0, 1.0) * self.n
        upto = np.cumsum(self.counts)
        group = np.minimum(np.searchsorted(upto, rank), len(upto) - 1)
        inside = rank - (upto[group] - self.counts[group])
        middle = self.low[group] / 2 + self.high[group] / 2
        below_high = np.where(inside <= self.low_counts[group], self.low[group], middle)
        at_high = inside > self.counts[group] - self.high_counts[group]
        return np.where(at_high & (self.low[group] < self.high[group]), self.high[group], below_high)[()]

    def without(self, spikes: Sequence[float]) -> tuple[FloatArray, FloatArray, AnyArray]:
        """Return the smallest values, largest values and counts of the groups, without the rows at the spikes."""
        counts = self.counts.copy()
        for spike in spikes:
            group = np.searchsorted(self.high, spike)
            if group < len(counts) and self.low[group] == spike:
                counts[group] -= self.low_counts[group]
            elif group < len(counts) and self.high[group] == spike:
                counts[group] -= self.high_counts[group]
        left = counts > 0
        return self.low[left], self.high[left], counts[left]

    @property
    def step(self) -> float:
        """Coarsest of `STEPS` of which all values are whole multiples; zero if there is none."""
        return next((step for step, holds in zip(STEPS, self.multiples, strict=True) if holds), 0.0)

    def is_numbering(self, least: int) -> bool:
        """Return whether the values number the rows: at least `least`, whole, distinct, from about zero upwards."""
        if not self.is_integral or self.n < least:
            return False
        fills = 0 <= self.min <= 0.1 * self.n and self.max < 2 * self.n
        return bool(fills and np.all(self.counts <= self.high - self.low + 1))

    def ends(self) -> tuple[FloatArray, AnyArray]:
        """Return the different values at the ends of groups, increasing, and their counts; all values if `exact`."""
        values, first = np.unique(np.concatenate([self.low, self.high]), return_index=True)
        return values, np.concatenate([self.low_counts, self.high_counts])[first]

    def spikes(self, most_values: int = 10) -> tuple[float, ...]:
        """Return values that repeat far more often than a density allows.

        A value is a spike if it holds at least 10 rows, 2% of all rows, and more than 5 times the median count of its
        8 nearest neighbours (4 on each side). The remaining rows are then searched once more in the same way: if nine
        in ten are zero, a value shared by a tenth of the others is a spike too. The value of a constant column is a
        spike, and so are all values of a column with at most `most_values` of them, each repeated 10 times on average.
        If the sketch is not `exact`, only values at the ends of groups are found: a spike with close neighbours on
        both sides is missed.

        >>> ValueSketch.of([0.0] * 50 + [7.0] * 20 + list(range(100, 150))).spikes()
        (0.0, 7.0)
        """
        values, counts = self.ends()
        few = self.exact and 0 < len(values) <= most_values
        if few and (len(values) == 1 or self.n >= 10 * len(values)):
            return tuple(values.tolist())
        found = _tall(counts, self.n)
        if found.any():
            rest = ~found
            found[np.flatnonzero(rest)[_tall(counts[rest], self.n - float(counts[found].sum()))]] = True
        return tuple(values[found].tolist())


def _keys(values: FloatArray) -> IntArray:
    """Return integers in the order of some numbers."""
    # shifted by one below zero, so that negative numbers are grouped like their absolute values
    return np.asarray(ordered_integers(values) - (values < 0))


def _counts(given: Any) -> AnyArray:
    """Return counts of unknown origin as integers or floats."""
    counts = np.array(given) if len(given) else np.empty(0, dtype=np.int64)
    if counts.dtype.kind not in "if" or not np.isfinite(counts).all():
        raise FileFormatError("Counts must be finite numbers.")
    return counts


def _tall(counts: AnyArray, n: float) -> AnyArray:
    """Return which values, given their counts in order, hold far more of the ``n`` rows than their neighbours."""
    tall = np.zeros(len(counts), dtype=bool)
    for i in np.flatnonzero(counts >= max(_SPIKE_ROWS, _SPIKE_SHARE * n)).tolist():
        around = np.concatenate([counts[max(i - 4, 0) : i], counts[i + 1 : i + 5]])
        tall[i] = counts[i] > _SPIKE_FACTOR * np.median(around) if len(around) else True
    return tall


def _are_multiples(values: FloatArray, step: float) -> bool:
    """Return whether all values are whole multiples of a step; a few are tried first, which settles most columns."""
    return all(_is_whole(part, step) for part in (values[:: max(len(values) // 64, 1)], values))


def _is_whole(values: FloatArray, step: float) -> bool:
    if np.abs(values).max(initial=0.0) > _MOST_STEPS * step:
        return False
    numbers = values / step
    return bool(np.all(np.abs(numbers - np.rint(numbers)) <= _STEP_ERROR * np.abs(numbers)))


def _bounded(sketch: ValueSketch) -> ValueSketch:
    """Drop the fewest bits that leave at most LIMIT groups."""
    lowest, highest = 0, 63
    while lowest < highest:  # bisection: the number of groups falls with the bits dropped
        middle = (lowest + highest) // 2
        groups = 1 + np.count_nonzero(np.diff(sketch.keys >> middle))
        lowest, highest = (lowest, middle) if groups <= sketch.LIMIT else (middle + 1, highest)
    return sketch._coarser(sketch.shift + lowest)  # noqa: SLF001  # the two halves of one step
