"""Axes: how the values of one variable fall into bins.

Choose `DiscreteAxis` if every value has its own bin (categories, a short range of integers) and `BinnedAxis`
otherwise. An axis numbers its bins 0 to `n_bins` - 1; the code `n_bins` means "missing".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from jointwise._checks import check_choice, check_integer, check_real, read_only, reading
from jointwise.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jointwise._typing import AnyArray, CodeArray, FloatArray

MAX_BINS = 65_535  # leaves one of the 16-bit codes for "missing"


class Axis(ABC):
    """Bins of one variable. Two axes are equal when all their numbers are."""

    @property
    @abstractmethod
    def n_bins(self) -> int:
        """Number of bins."""

    @abstractmethod
    def index(self, values: Any) -> CodeArray:
        """Return the bin of each encoded value, `n_bins` for NaN."""

    @property
    @abstractmethod
    def representatives(self) -> FloatArray:
        """Value that stands for each bin, shape (n_bins,); raises for intervals without centres."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return plain types that `json` can write."""

    @staticmethod
    @reading("an axis as written by `to_dict`")
    def from_dict(fields: Mapping[str, Any]) -> Axis:
        """Return the axis that `to_dict` of any axis wrote; raise FileFormatError for anything else.

        >>> Axis.from_dict(DiscreteAxis([0.0, 1.0]).to_dict()).n_bins
        2
        """
        check_choice("type", fields["type"], ("binned", "discrete"))
        if fields["type"] == "binned":
            return BinnedAxis(fields["edges"], fields["spikes"], fields.get("centres"))
        return DiscreteAxis(fields["values"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Axis) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.n_bins))


@dataclass(frozen=True, eq=False)
class BinnedAxis(Axis):
    """Half-open intervals (-inf, e_1], (e_1, e_2], ..., (e_K, inf), then one bin for each spike.

    Parameters
    ----------
    edges : array-like of shape (K,)
        Inner edges, increasing. Without edges there is one interval.
    spikes : array-like of shape (S,)
        Values with a bin of their own; the intervals do not include them.
    centres : array-like of shape (K + 1,), optional
        Value that stands for each interval, inside it. Fine axes have them, see `Profile.axes`.

    Examples
    --------
    >>> axis = BinnedAxis([1.0, 2.0], spikes=[0.0])
    >>> axis.index([-3.0, 1.0, 1.5, 9.0, 0.0, float("nan")]).tolist()
    [0, 0, 1, 2, 3, 4]
    """

    edges: FloatArray
    spikes: FloatArray = field(default_factory=lambda: np.empty(0))
    centres: FloatArray | None = None

    def __post_init__(self) -> None:
        for name in ("edges", "spikes"):
            object.__setattr__(self, name, _increasing(name, getattr(self, name)))
        _check_size(self.n_bins)
        if self.centres is not None:
            object.__setattr__(self, "centres", self._inside(_increasing("centres", self.centres)))

    def _inside(self, centres: FloatArray) -> FloatArray:
        if len(centres) != self.n_intervals or np.any(centres <= self.lower) or np.any(centres > self.upper):
            raise InputError(
                f"`centres` must be {self.n_intervals} numbers, one inside each interval (lower, upper]; got "
                f"{len(centres)}."
            )
        return centres

    @property
    def n_intervals(self) -> int:
        """Number of interval bins; the spikes' bins follow them."""
        return len(self.edges) + 1

    @property
    def n_bins(self) -> int:
        """Number of intervals and spikes."""
        return self.n_intervals + len(self.spikes)

    @property
    def lower(self) -> FloatArray:
        """Lower ends of the intervals, shape (n_intervals,); the first is -inf."""
        return np.concatenate([[-np.inf], self.edges])

    @property
    def upper(self) -> FloatArray:
        """Upper ends of the intervals, shape (n_intervals,); the last is inf."""
        return np.concatenate([self.edges, [np.inf]])

    def index(self, values: Any) -> CodeArray:
        """Return the bin of each value: the interval (lower, upper] or the spike it is; `n_bins` for NaN."""
        values = np.asarray(values, dtype=np.float64)
        codes: CodeArray = np.asarray(np.searchsorted(self.edges, values, side="left"), code_dtype([self]))
        for position, spike in enumerate(self.spikes):
            codes[values == spike] = self.n_intervals + position
        codes[np.isnan(values)] = self.n_bins
        return codes

    @property
    def representatives(self) -> FloatArray:
        """Centres, then spikes, shape (n_bins,); raises if the axis has no centres.

        >>> BinnedAxis([1.0], spikes=[0.0], centres=[0.5, 7.0]).representatives.tolist()
        [0.5, 7.0, 0.0]
        """
        if self.centres is None:
            raise InputError("The intervals of this axis have no centres. Name the column in `fine` of Profile.axes.")
        return np.concatenate([self.centres, self.spikes])

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that `json` can write."""
        fields = {"type": "binned", "edges": self.edges.tolist(), "spikes": self.spikes.tolist()}
        return fields if self.centres is None else {**fields, "centres": self.centres.tolist()}

    @classmethod
    def equal_width(cls, low: float, high: float, n_bins: int) -> BinnedAxis:
        """Cut [low, high] into `n_bins` - 2 equal intervals between two open end bins.

        Two bins meet in the middle. If `n_bins` is 1 or `low` equals `high`, there is one bin.

        >>> BinnedAxis.equal_width(0.0, 1.0, 4).edges.tolist()
        [0.0, 0.5, 1.0]
        """
        low, high = check_real("low", low), check_real("high", high)
        n_bins = check_integer("n_bins", n_bins, 1)
        if low > high:
            raise InputError(f"`low` must not be above `high`; got {low} and {high}.")
        if n_bins == 1 or low == high:
            return cls(np.empty(0))
        if n_bins == 2:
            return cls(np.array([low / 2 + high / 2]))
        return cls(np.unique(2 * np.linspace(low / 2, high / 2, n_bins - 1)))  # high - low could overflow

    @classmethod
    def quantiles(
        cls, values: Any, counts: Any, n_bins: int, *, upper: Any = None, spikes: Sequence[float] = ()
    ) -> BinnedAxis:
        """Cut into at most `n_bins` intervals that hold nearly equal counts.

        Edges lie midway between neighbouring values, so no value is on an edge. With fewer distinct values than bins
        there are fewer intervals.

        Parameters
        ----------
        values : array-like of shape (m,)
            Distinct values, increasing; or the smallest of each group of values.
        counts : array-like of shape (m,)
            Number of rows with each value, or with any value of the group.
        n_bins : int
            Largest number of intervals.
        upper : array-like of shape (m,), optional
            Largest value of each group, if `values` stand for groups.
        spikes : sequence of float
            Spikes of the axis.

        Examples
        --------
        >>> BinnedAxis.quantiles([0.0, 1.0, 2.0, 3.0], [5, 1, 1, 5], n_bins=2).edges.tolist()
        [1.5]
        """
        n_bins = check_integer("n_bins", n_bins, 1)
        gaps = midpoints(values, values if upper is None else upper)
        return cls(gaps[_even_cuts(np.asarray(counts, dtype=np.float64), n_bins)], np.asarray(spikes, float))


@dataclass(frozen=True, eq=False)
class DiscreteAxis(Axis):
    """One bin for each of a set of values; any other value gets the missing code.

    Examples
    --------
    >>> DiscreteAxis([0.0, 1.0, 2.0]).index([2.0, 0.0, 7.0, float("nan")]).tolist()
    [2, 0, 3, 3]
    """

    values: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _increasing("values", self.values))
        if not len(self.values):
            raise InputError("A discrete axis needs at least one value.")
        _check_size(self.n_bins)

    @property
    def n_bins(self) -> int:
        """Number of values."""
        return len(self.values)

    def index(self, values: Any) -> CodeArray:
        """Return the position of each value; `n_bins` for NaN and for values that are not on the axis."""
        values = np.asarray(values, dtype=np.float64)
        position = np.searchsorted(self.values, values)
        known = self.values[np.minimum(position, self.n_bins - 1)] == values
        codes: CodeArray = np.where(known, position, self.n_bins).astype(code_dtype([self]))
        return codes

    @property
    def representatives(self) -> FloatArray:
        """The values."""
        return self.values

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that `json` can write."""
        return {"type": "discrete", "values": self.values.tolist()}


def code_dtype(axes: Sequence[Axis]) -> np.dtype[Any]:
    """Return the smallest integer type that holds every bin of the axes and "missing".

    >>> code_dtype([DiscreteAxis(range(255))]), code_dtype([DiscreteAxis(range(256))])
    (dtype('uint8'), dtype('uint16'))
    """
    return np.dtype(np.uint8 if all(axis.n_bins <= 255 for axis in axes) else np.uint16)


def encode_rows(matrix: FloatArray, axes: Sequence[Axis]) -> CodeArray:
    """Return encoded rows as codes, the numbers of their bins.

    Parameters
    ----------
    matrix : array of shape (n, N)
        Encoded values, one column for each axis.
    axes : sequence of N axes

    Returns
    -------
    codes : array of shape (n, N)
        uint8 if every axis has at most 255 bins, else uint16.
    """
    if matrix.ndim != 2 or matrix.shape[1] != len(axes):
        raise InputError(f"`matrix` must have {len(axes)} columns, one for each axis; got {matrix.shape}.")
    codes: CodeArray = np.empty(matrix.shape, dtype=code_dtype(axes))
    for column, axis in enumerate(axes):
        codes[:, column] = axis.index(matrix[:, column])
    return codes


def regrouping(fine: Axis, coarse: Axis) -> CodeArray:
    """Return the bin of a coarse axis for each bin of a fine one, "missing" at the end; shape (fine.n_bins + 1,).

    The lookup of a fine code is then the coarse code of the same value. So the edges, spikes or values of the coarse
    axis must be among those of the fine one; categories may be put into any bins.

    >>> regrouping(BinnedAxis([0.0, 1.0, 2.0], spikes=[1.5]), BinnedAxis([1.0])).tolist()
    [0, 0, 1, 1, 1, 2]
    >>> regrouping(DiscreteAxis(range(5)), BinnedAxis([2.5], spikes=[1.0])).tolist()
    [0, 2, 0, 1, 1, 3]
    """
    if isinstance(fine, BinnedAxis) and isinstance(coarse, BinnedAxis):
        nested = _are_among(coarse.edges, fine.edges) and _are_among(coarse.spikes, fine.spikes)
        intervals = np.searchsorted(coarse.edges, fine.upper, side="left")  # not `index`: an edge may be a spike
        ends = fine.spikes
    elif isinstance(fine, DiscreteAxis) and isinstance(coarse, DiscreteAxis):
        nested = _are_among(coarse.values, fine.values)
        intervals, ends = np.empty(0, dtype=np.intp), fine.values
    elif isinstance(fine, DiscreteAxis):
        nested, intervals, ends = True, np.empty(0, dtype=np.intp), fine.values
    else:
        nested, intervals, ends = False, np.empty(0, dtype=np.intp), np.empty(0)
    if not nested:
        raise InputError("Bins can only be merged: each edge, spike or value of the new axis must be one of the old.")
    merged: CodeArray = np.concatenate([intervals, coarse.index(ends), [coarse.n_bins]]).astype(code_dtype([coarse]))
    return merged


def _are_among(numbers: FloatArray, others: FloatArray) -> bool:
    """Whether increasing numbers are all among other increasing ones.

    >>> _are_among(np.array([1.0, 3.0]), np.arange(3.0)), _are_among(np.array([0.0, 2.0]), np.arange(3.0))
    (False, True)
    """
    places = np.searchsorted(others, numbers)
    return len(numbers) == 0 or bool(places[-1] < len(others) and (others[places] == numbers).all())


def midpoints(lower: Any, upper: Any) -> FloatArray:
    """Return the points midway between neighbouring groups of values, shape (m - 1,).

    Group i extends from lower[i] to upper[i]. The point p after it has upper[i] <= p < lower[i + 1], even between
    neighbouring floats, so intervals (..., p] keep each group whole.
    """
    below = np.asarray(upper, dtype=np.float64)[:-1]
    above = np.asarray(lower, dtype=np.float64)[1:]
    middle: FloatArray = below / 2 + above / 2  # the sum itself could overflow
    return np.where((middle < below) | (middle >= above), below, middle)


def half_integers(edges: FloatArray) -> FloatArray:
    """Move edges that lie between two integers to the k + 1/2 between them.

    >>> half_integers(np.array([2.5, 4.0])).tolist()
    [2.5, 4.5]
    """
    return np.unique(np.floor(edges) + 0.5)


def snap(edges: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Move each edge to the midpoint of the gap between values in which it falls; edges that meet become one.

    >>> snap(np.array([1.1, 1.9, 2.5]), np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0])).tolist()
    [1.5, 2.5]
    """
    gap = np.searchsorted(lower, edges, side="right") - 1  # the last group that starts at or below the edge
    return midpoints(lower, upper)[np.unique(gap[(gap >= 0) & (gap < len(lower) - 1)])]


def _even_cuts(counts: FloatArray, n_bins: int) -> AnyArray:
    """Return the cuts (i: between values i and i + 1) whose cumulative counts are closest to even shares."""
    if len(counts) <= n_bins:
        return np.arange(max(len(counts) - 1, 0))
    total = np.cumsum(counts)
    targets = total[-1] * np.arange(1, n_bins) / n_bins
    above = np.clip(np.searchsorted(total, targets), 1, len(counts) - 2)
    nearer = np.abs(total[above - 1] - targets) <= np.abs(total[above] - targets)
    return np.unique(above - nearer)


def _increasing(name: str, numbers: Any) -> AnyArray:
    array = read_only(numbers, np.float64)
    if array.ndim != 1 or not np.all(np.isfinite(array)) or np.any(array[1:] <= array[:-1]):
        raise InputError(f"`{name}` must be a one-dimensional sequence of finite increasing numbers.")
    return array


def _check_size(n_bins: int) -> None:
    if n_bins > MAX_BINS:
        raise InputError(f"An axis can have at most {MAX_BINS} bins; got {n_bins}. Merge rare values first.")
