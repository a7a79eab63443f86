r"""The states of a column: what its values are to a tree, and what law each state gives them.

Each category and each integer of a short range is a state. A column of other numbers has some quantile bins as states;
within a bin it keeps the shape of its own 1-D fit, f(x) / F(bin). A value that many rows share, a spike, is a state of
its own. Of many categories the frequent ones are states and the others are put into groups of neighbours, within which
each has its own frequency. So states do not overlap: each value belongs to one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_ndtr

from jointwise._typing import BoolArray, FloatArray, IntArray
from jointwise.axes import Axis, BinnedAxis, DiscreteAxis, regrouping
from jointwise.dictionary import Dictionary
from jointwise.families import Gaussian, Lattice, PointMass, StudentT, Truncated, Warped
from jointwise.fitting.blocks.warps import Counted, bounded, scores
from jointwise.fitting.possible import UNMET_ROWS, unmet_rows
from jointwise.tables.variables import Kind, Variable
from jointwise.warps import Warp

if TYPE_CHECKING:
    from jointwise.families import Family

# Most states of a column whose values are states of their own.
MOST_STATES = 64
# Share of these that frequent categories have where categories are more; the others are groups.
FREQUENT = 0.5
# A bin with less mass than this in the 1-D fit has no shape worth keeping.
LEAST_LOG_MASS = -600.0


@dataclass(frozen=True, eq=False)
class ColumnStates:
    """The states of one column.

    Parameters
    ----------
    axis : Axis
        Each of its bins is a state.
    atoms : Dictionary
        What each state emits; then atoms for values that no bin holds, each a further state without rows.
    shares : array of shape (further atoms,)
        Probability of the further states.
    log_masses : array of shape (n_bins,)
        Logarithm of the mass of each bin under the column's own 1-D fit.
    groups : array of shape (S, A), optional
        Law of the atoms in each state, where states are not atoms: of a column with too many categories, S groups of
        them; of numbers with smooth atoms, whose A fine bins are `axis`, S such atoms.
    """

    axis: Axis
    atoms: Dictionary
    shares: FloatArray
    log_masses: FloatArray
    groups: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Column:
    """A column before its states are chosen.

    Parameters
    ----------
    variable : Variable
    axis : Axis
        Fine, or at least finer than the states.
    counts : array of shape (n_bins,)
        Rows in each bin of the axis.
    dictionary : Dictionary
        Atoms of the column's own 1-D fit.
    weights : array of shape (L,)
        Their weights.
    """

    variable: Variable
    axis: Axis
    counts: FloatArray
    dictionary: Dictionary
    weights: FloatArray

    def states(self, n_bins: int, most: int = MOST_STATES, edges: FloatArray | None = None) -> ColumnStates:
        """Return states of the column.

        Parameters
        ----------
        n_bins : int
            Most quantile bins of a column of numbers.
        most : int
            Most states of a column of categories or integers.
        edges : array, optional
            Edges of bins instead of quantiles; those of spikes are added.
        """
        if isinstance(self.axis, DiscreteAxis):
            return self._categories(most)
        if self.variable.is_enumerated and self._n_integers <= most:
            return self._integers()
        return self._bins(n_bins, edges)

    def coarse(self, n_bins: int, most: int = MOST_STATES, edges: FloatArray | None = None) -> Axis:
        """Return the axis of the states that `states` returns."""
        if isinstance(self.axis, DiscreteAxis):
            return self.axis if self.axis.n_bins <= most else grouped_categories(self.counts, most)
        if self.variable.is_enumerated and self._n_integers <= most:
            low, high = self.variable.observed
            return BinnedAxis(np.arange(low, high) + 0.5)
        return self.bins(n_bins, edges)

    def on(self, axis: Axis) -> FloatArray:
        """Return the counts of the bins of a coarser axis."""
        where = regrouping(self.axis, axis)[:-1]
        return np.bincount(where, self.counts, minlength=axis.n_bins).astype(np.float64)

    @property
    def has_bins(self) -> bool:
        """Whether quantile bins are states."""
        return not (isinstance(self.axis, DiscreteAxis) or self.variable.is_enumerated) and bool(self._smooth.any())

    # ---- single values -----------------------------------------------------------------------------------

    def _categories(self, most: int) -> ColumnStates:
        n = self.axis.n_bins
        atoms = Dictionary.categories(n)
        if n <= most:
            return ColumnStates(self.axis, atoms, np.empty(0), _log_shares(self.counts))
        axis = grouped_categories(self.counts, most)
        where = regrouping(self.axis, axis)[:-1]
        table = np.zeros((axis.n_bins, n))
        table[where, np.arange(n)] = self.counts + unmet_rows(self.counts)
        sums = table.sum(axis=1, keepdims=True)
        return ColumnStates(axis, atoms, np.empty(0), _log_shares(sums[:, 0]), table / sums)

    @property
    def _n_integers(self) -> int:
        low, high = self.variable.observed
        return int(high - low) + 1

    def _integers(self) -> ColumnStates:
        low, high = self.variable.observed
        axis = BinnedAxis(np.arange(low, high) + 0.5)
        counts = self.on(axis)
        atoms = Dictionary.points(np.arange(low, high + 1))
        start, end = self.variable.support
        wide = [(-np.inf, low - 1), (high + 1, np.inf)]
        ends = [(max(a, start), min(b, end)) for a, b in wide if max(a, start) <= min(b, end)]
        return self._with_others(axis, atoms, counts, ends)

    def _with_others(
        self, axis: BinnedAxis, atoms: Dictionary, counts: FloatArray, ends: list[tuple[float, float]]
    ) -> ColumnStates:
        """Return states of single values, with one for all other numbers between each of some ends."""
        fewest = counts[counts > 0].min(initial=np.inf)
        shares = np.full(len(ends), UNMET_ROWS / max(fewest, 1.0) / max(len(ends), 1))
        shares /= max(counts.sum(), 1.0) + shares.sum()
        if ends:
            atoms = atoms + Dictionary((self._wide(ends),))
        return ColumnStates(axis, atoms, shares, _log_shares(counts))

    def _wide(self, ends: list[tuple[float, float]]) -> Family:
        """Return an atom over all numbers between each of some ends."""
        low, high = self.variable.observed
        whole = self.variable.kind is Kind.INTEGER
        spread = high - low + 1 if whole else (high - low) or self.variable.step or abs(high) or 1.0
        n = len(ends)
        law = StudentT(df=np.full(n, 3.0), loc=np.full(n, low / 2 + high / 2), scale=np.full(n, spread / 2))
        reach = 0.5 if whole else 0.0
        cut = Truncated(law, np.array([a for a, _ in ends]) - reach, np.array([b for _, b in ends]) + reach)
        return Lattice(cut) if whole else cut

    # ---- bins --------------------------------------------------------------------------------------------

    def _bins(self, n_bins: int, edges: FloatArray | None) -> ColumnStates:
        axis = self.bins(n_bins, edges)
        if not whole_line(axis) and not self._smooth.any() and self.variable.kind is not Kind.INTEGER:
            return self._spikes_alone(axis)
        low, high = self._ends(axis)
        point = high - low == 1.0 if self.variable.kind is Kind.INTEGER else np.zeros(len(low), dtype=bool)
        warp = self.warp
        logs = _log_mass(warp(low), warp(high))
        if not (point | (logs > LEAST_LOG_MASS)).all():
            warp = _even_warp(axis.edges, self.variable)
            logs = _log_mass(warp(low), warp(high))
        # spikes and the rest have their shares of the rows, and the rest is spread as its own fit says
        counts = self.on(axis)
        spiked = self.spiked(axis)
        rest = np.log(max(float(counts[~spiked].sum()), UNMET_ROWS) / max(float(counts.sum()), UNMET_ROWS))
        logs = np.where(spiked, _log_shares(counts), rest + np.append(logs, np.zeros(len(axis.spikes))))
        atoms = self._pieces(warp, low, high)
        if len(axis.spikes):
            atoms = atoms + Dictionary.points(axis.spikes)
        return ColumnStates(axis, atoms, np.empty(0), logs)

    def spiked(self, axis: BinnedAxis) -> BoolArray:
        """Return which bins of an axis are spikes; of integers, intervals with one integer may be. Shape (n_bins,)."""
        low, high = self._ends(axis)
        single = high - low == 1.0 if self.variable.kind is Kind.INTEGER else np.zeros(len(low), dtype=bool)
        return np.append(single & np.isin(low + 0.5, self.variable.spikes), np.ones(len(axis.spikes), dtype=bool))

    def _spikes_alone(self, axis: BinnedAxis) -> ColumnStates:
        """Return the states of numbers that are all spikes; the interval around them is for any other number."""
        start, end = self.variable.support
        others = self._wide([(start, end)])
        atoms = Dictionary((others,)) + Dictionary.points(axis.spikes)
        return ColumnStates(axis, atoms, np.empty(0), _log_shares(np.append(0.0, self.counts[-len(axis.spikes) :])))

    @cached_property
    def _smooth(self) -> FloatArray:
        """Counts of the intervals, without spikes."""
        assert isinstance(self.axis, BinnedAxis)
        return self.counts[: self.axis.n_intervals]

    def bins(self, n_bins: int, edges: FloatArray | None = None) -> BinnedAxis:
        """Return intervals and spikes of a column of numbers; the intervals are quantile bins if no edges are given.

        Of integers, spikes are bins of width one.
        """
        axis = self.axis
        assert isinstance(axis, BinnedAxis)
        if edges is None:
            edges = axis.edges[_even_cuts(self._smooth, n_bins)] if self._smooth.any() else np.empty(0)
        if self.variable.kind is not Kind.INTEGER:
            return BinnedAxis(edges, axis.spikes)
        points = np.array(self.variable.spikes)
        around = np.stack([points - 0.5, points + 0.5])
        apart = np.isin(around, axis.edges).all(axis=0)
        edges = np.union1d(edges, around[:, apart])
        low, high = self._bounds
        inside = (edges > low) & (edges < high)
        return BinnedAxis(edges[inside], np.setdiff1d(axis.spikes, points[apart]))

    @property
    def _bounds(self) -> tuple[float, float]:
        """The support, at least as wide as what was observed; of integers, half a step wider."""
        (low, high), seen = self.variable.support, self.variable.observed
        if np.isfinite(seen).all():
            low, high = min(low, seen[0]), max(high, seen[1])
        return (low - 0.5, high + 0.5) if self.variable.kind is Kind.INTEGER else (low, high)

    def _ends(self, axis: BinnedAxis) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the intervals within the support."""
        low, high = self._bounds
        lower, upper = np.maximum(axis.lower, low), np.minimum(axis.upper, high)
        return lower, np.where(upper > lower, upper, np.nextafter(lower, np.inf))

    def _pieces(self, warp: Warp, low: FloatArray, high: FloatArray) -> Dictionary:
        """Return the 1-D fit cut to intervals, one atom each; an interval with one integer is that point."""
        n = len(low)
        if self.variable.kind is not Kind.INTEGER:
            cut = Truncated(Gaussian(loc=np.zeros(n), scale=np.ones(n)), warp(low), warp(high))
            return Dictionary((Warped.through(warp, cut),))
        single = high - low == 1.0
        families: list[Family] = []
        breaks = np.flatnonzero(np.diff(single)) + 1
        for part in np.split(np.arange(n), breaks):
            if single[part[0]]:
                families.append(PointMass(loc=low[part] + 0.5))
            else:
                law = Gaussian(loc=np.zeros(len(part)), scale=np.ones(len(part)))
                families.append(Lattice(Warped.through(warp, Truncated(law, warp(low[part]), warp(high[part])))))
        return Dictionary(tuple(families))

    @cached_property
    def warp(self) -> Warp:
        """The map of the column's own 1-D fit, spikes aside, to a Gaussian."""
        values = numbers_of(self.axis, self.variable)
        here = np.flatnonzero(self._smooth > 0)
        column = Counted(values[here], self._smooth[here]) if len(here) else None
        if column is None or len(here) < 2 or not column.is_spread():
            return _even_warp(values[here], self.variable)
        bend = scores(column, self.dictionary, self.weights, whole=self.variable.kind is Kind.INTEGER)
        return bounded(bend, column, self._bounds)


def grouped_categories(counts: FloatArray, most: int) -> BinnedAxis:
    """Return an axis of categories' codes: the frequent ones as spikes, neighbouring others as intervals.

    Codes follow the order of the categories, so neighbours are alike where names have common beginnings.

    >>> axis = grouped_categories(np.array([9.0, 1.0, 1.0, 9.0, 1.0, 1.0]), 4)
    >>> axis.edges.tolist(), axis.spikes.tolist()
    ([3.5], [0.0, 3.0])
    """
    n_frequent = int(FREQUENT * most)
    frequent = np.sort(np.argsort(-counts, kind="stable")[:n_frequent])
    rest = np.setdiff1d(np.arange(len(counts)), frequent)
    bins = BinnedAxis.quantiles(rest, counts[rest] + UNMET_ROWS, most - n_frequent)
    return BinnedAxis(np.floor(bins.edges) + 0.5, frequent.astype(np.float64))


def numbers_of(axis: Axis, variable: Variable) -> FloatArray:
    """Return a number that stands for each interval of an axis: its centre, or about its middle."""
    assert isinstance(axis, BinnedAxis)
    if axis.centres is not None:
        return axis.centres
    low, high = variable.observed if np.isfinite(variable.observed).all() else (0.0, 0.0)
    lower, upper = np.concatenate([[low], axis.edges]), np.concatenate([axis.edges, [high]])
    middle = np.clip(lower / 2 + upper / 2, np.nextafter(axis.lower, np.inf), axis.upper)
    return np.asarray(np.maximum.accumulate(middle))


def whole_line(axis: BinnedAxis) -> bool:
    """Whether an axis has edges."""
    return len(axis.edges) > 0


def _even_cuts(counts: FloatArray, n_bins: int) -> IntArray:
    """Return the cuts (i: between bins i and i + 1) whose cumulative counts are closest to even shares."""
    total = np.cumsum(counts)
    targets = total[-1] * np.arange(1, n_bins) / n_bins
    above = np.searchsorted(total, targets)
    nearer = (above > 0) & (np.abs(total[np.maximum(above - 1, 0)] - targets) <= np.abs(total[above] - targets))
    cuts = np.unique(above - nearer)
    # a cut beyond the last row, or before the first, would leave a bin without rows
    kept: IntArray = cuts[(cuts < len(counts) - 1) & (total[cuts] > 0) & (total[cuts] < total[-1])]
    return kept


def _log_shares(counts: FloatArray) -> FloatArray:
    """Logarithm of the share of each state, of states without rows too."""
    rows = counts + unmet_rows(counts)
    return np.asarray(np.log(rows / rows.sum()))


def _log_mass(low: FloatArray, high: FloatArray) -> FloatArray:
    """Logarithm of a standard Gaussian's mass in intervals."""
    flip = low > 0
    a, b = np.where(flip, -high, low), np.where(flip, -low, high)
    with np.errstate(divide="ignore"):
        return np.asarray(log_ndtr(b) + np.log(-np.expm1(log_ndtr(a) - log_ndtr(b))))


def _even_warp(values: FloatArray, variable: Variable) -> Warp:
    """Return the line that takes the range of some values, or of a variable, to that of a Gaussian."""
    seen = np.concatenate([values, variable.observed])
    seen = seen[np.isfinite(seen)]
    if not len(seen):
        return Warp.line(0.0, 1.0)
    low, high = float(seen.min()), float(seen.max())
    least = 1.0 if variable.kind is Kind.INTEGER else variable.step or 4 * float(np.spacing(max(abs(low), abs(high))))
    return Warp.line(low / 2 + high / 2, max(high / 4 - low / 4, least))
