"""Candidates for the dictionary of one column, made from the shape of its counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jointwise._checks import shown
from jointwise._typing import CodeArray, FloatArray
from jointwise.axes import Axis, BinnedAxis
from jointwise.dictionary import Dictionary
from jointwise.exceptions import InputError
from jointwise.families import Exponential, Family, Gamma, Gaussian, Laplace, LogNormal, StudentT
from jointwise.fitting.choice.pool import LEAST_INSIDE, Candidates, Part, neighbouring_parts
from jointwise.tables.variables import Kind, Variable

# Numbers of locations on [q0.5%, q99.5%], and scales in units of their distance. Well above 1, a mixture of neighbours
# has no dents with which it could follow the noise of the counts.
GRIDS = ((13, 1.0), (17, 1.5), (25, 1.5), (25, 2.0), (33, 2.0), (37, 1.5), (49, 2.0))
SIZES = (9, 17, 33)
# Narrow atoms that are added where rows of a component may need them.
SHARP = 33
FAMILIES: dict[str, type[Gaussian | Laplace]] = {"gaussian": Gaussian, "laplace": Laplace}
# Atoms on the positive half-line are offered where the 90% quantile is more than this times the 10% quantile.
POSITIVE_FACTOR = 2.0
# Between 5% and 95%, if the longest tenth of the rows is this many times the shortest, one scale does not fit all.
UNEVEN_FACTOR = 4.0
# A lattice atom narrower than this is a point mass to three digits.
LEAST_LATTICE_SCALE = 0.3
# A density is taken to jump where neighbouring bins differ by this factor, and by this many standard errors.
JUMP_FACTOR, JUMP_ERRORS = 3.0, 4.0
# Bins with fewer rows are merged: a jump from none to this many is five standard errors.
JUMP_ROWS = 25
MAX_JUMPS = 4


def candidate_dictionaries(variable: Variable, axis: Axis, counts: FloatArray) -> Candidates:
    """All dictionaries considered for a variable; there is at least one."""
    if variable.categories is not None:
        return _only(Dictionary.categories(len(variable.categories)))
    assert isinstance(axis, BinnedAxis)  # only categories have no order
    if variable.is_enumerated:
        low, high = variable.observed
        return _only(Dictionary.points(np.arange(low, high + 1)))
    margin = _Margin(variable, axis, counts)
    points = axis.spikes if len(axis.spikes) else variable.spikes  # no bins of their own where each integer has one
    spikes = Dictionary.points(points) if len(points) else None
    if not margin.is_empty:
        found = margin.atoms_of_all(_densities(margin))
        return found if spikes is None else found.plus(spikes)
    assert spikes is not None  # a column without any has a row in some interval
    if variable.kind is Kind.INTEGER:
        # no row has the values between the spikes, but they are integers too
        return _only(spikes + margin.atoms(_between(variable)))
    return _only(spikes)


def _only(dictionary: Dictionary) -> Candidates:
    parts = [Part(number, 0, family.n_atoms) for number, family in enumerate(dictionary.families)]
    return Candidates(dictionary.families, [parts])


def _of_kind(variable: Variable, dictionary: Dictionary) -> Dictionary:
    return dictionary.on_lattice() if variable.kind is Kind.INTEGER else dictionary


def _within(variable: Variable, dictionary: Dictionary) -> Dictionary:
    """Return the atoms cut to the support."""
    if not variable.is_bounded:
        return dictionary
    low, high = variable.support
    return dictionary.take(dictionary.closed_mass(low, high) > LEAST_INSIDE).truncate(low, high)


class _Margin:
    """Counts of the interval bins of one variable, and the quantities that candidates are made from."""

    def __init__(self, variable: Variable, axis: Axis, counts: FloatArray) -> None:
        assert isinstance(axis, BinnedAxis)  # only categories have no order
        low, high = variable.observed
        self.is_signed = low < 0
        if variable.kind is Kind.INTEGER:  # an integer k stands for (k - 1/2, k + 1/2]
            low, high = low - 0.5, high + 0.5
        self.variable = variable
        self.edges = np.maximum.accumulate(np.concatenate([[low], axis.edges, [high]]))
        self.counts = counts[: axis.n_intervals]
        if variable.spikes and not len(axis.spikes):  # each integer has a bin, spikes too
            self.counts = _without(self.counts, axis.index(np.array(variable.spikes)))
        self.is_empty = not self.counts.any()
        if self.is_empty:
            return
        self.low, self.middle, self.high = self.quantile([0.005, 0.5, 0.995])
        # atoms narrower than the distance of neighbouring numbers are the same as point masses
        finest = LEAST_LATTICE_SCALE if variable.kind is Kind.INTEGER else 4 * np.spacing(np.abs(self.edges).max())
        self.least_scale = max(float(finest), 1e-3 * float(self.high - self.low) / len(self.counts))
        self.spread = max(float(self.high - self.low), self.least_scale)

    def quantile(self, q: Sequence[float] | FloatArray) -> FloatArray:
        """Quantiles from the counts, linear inside a bin."""
        cumulative = np.concatenate([[0.0], np.cumsum(self.counts)])
        return np.asarray(np.interp(np.asarray(q) * cumulative[-1], cumulative, self.edges))

    def atoms(self, dictionary: Dictionary) -> Dictionary:
        """Densities as atoms that the variable can have: on the integers, within the support."""
        return _within(self.variable, _of_kind(self.variable, dictionary))

    def atoms_of_all(self, candidates: Candidates) -> Candidates:
        """Return `atoms` of each of several dictionaries."""
        found = candidates.on_lattice() if self.variable.kind is Kind.INTEGER else candidates
        return found.within(*self.variable.support) if self.variable.is_bounded else found

    def is_positive(self) -> bool:
        """Whether all values are positive, and so spread that their logarithms are easier to describe."""
        lower, upper = self.quantile([0.1, 0.9])
        return bool(not self.is_signed and upper > POSITIVE_FACTOR * lower > 0)

    def is_uneven(self) -> bool:
        """Whether rows are so much denser in some places that one scale cannot fit all."""
        gaps = np.diff(self.quantile(np.arange(0.05, 1, 0.1)))
        return bool(gaps.max() > UNEVEN_FACTOR * gaps.min())

    def jumps(self) -> FloatArray:
        """Edges, including the ends, where the density of neighbouring bins differs far beyond noise."""
        cumulative = np.concatenate([[0.0], np.cumsum(self.counts)])
        # bins with too few rows to tell are merged with the next: a cut comes with every further `JUMP_ROWS` rows
        reached = np.floor(cumulative / JUMP_ROWS)
        more = (reached[1:] > reached[:-1]) & ((reached[:-1] + 1) * JUMP_ROWS < cumulative[-1])
        cuts = np.concatenate([[0], 1 + np.flatnonzero(more)])
        cuts[-1] = len(self.counts)
        edges, counts = self.edges[cuts], np.diff(cumulative[cuts])
        widths = np.maximum(np.diff(edges), self.least_scale) / self.spread
        padded = np.concatenate([[0.0], counts / widths, [0.0]])
        # a count is its own squared standard error
        noise = np.concatenate([[0.0], np.sqrt(counts) / widths, [0.0]])
        step = np.abs(np.diff(padded))
        clear = step > JUMP_ERRORS * np.hypot(noise[1:], noise[:-1])
        large = np.maximum(padded[1:], padded[:-1]) > JUMP_FACTOR * np.minimum(padded[1:], padded[:-1])
        found = np.flatnonzero(clear & large)
        return np.sort(edges[found[np.argsort(-step[found])][:MAX_JUMPS]])


def _without(counts: FloatArray, spikes: CodeArray) -> FloatArray:
    """Counts of unit bins, with those of spikes replaced by what their neighbours have."""
    rest = np.ones(len(counts), dtype=bool)
    rest[spikes] = False
    if not counts[rest].any():
        return np.zeros(len(counts))
    return np.asarray(np.where(rest, counts, np.interp(np.arange(len(counts)), np.flatnonzero(rest), counts[rest])))


def _between(variable: Variable) -> Dictionary:
    """One wide atom over the range of a variable all of whose values are spikes."""
    low, high = variable.observed
    return Dictionary(
        (StudentT(df=np.array([3.0]), loc=np.array([(low + high) / 2]), scale=np.array([(high - low) / 6])),)
    )


def _densities(margin: _Margin) -> Candidates:
    """Candidates for a density: grids of Gaussians or Laplacians, plus what the shape of the counts suggests."""
    families: list[Family] = []

    def pooled(*more: Family) -> list[Part]:
        families.extend(more)
        first = len(families) - len(more)
        return [Part(first + k, 0, family.n_atoms) for k, family in enumerate(more)]

    # one wide heavy-tailed atom, so that no row is out of reach and the grid need not stretch into the tails
    wide = pooled(StudentT(df=np.array([3.0]), loc=margin.middle, scale=np.array([margin.spread / 6])))
    extras = []
    is_positive, jumps = margin.is_positive(), margin.jumps()
    if is_positive:
        extras.append(wide + pooled(*_positive(margin).families))
    if len(jumps) >= 2:
        extras.append(wide + pooled(*Dictionary.uniforms(jumps).families))
    grids = [_even_grids(margin, GRIDS)]
    sizes, beside = [n for n, _ in GRIDS], [[wide]] * len(GRIDS)
    if extras:
        grids.append(_even_grids(margin, [(n, 1.0) for n in SIZES]))
        sizes, beside = [*sizes, *SIZES], beside + [extras] * len(SIZES)
    if margin.is_uneven() and not is_positive:
        grids += [_quantile_grid(margin, n) for n in SIZES]
        heavy = wide + pooled(*_heavy(margin).families)
        sizes, beside = [*sizes, *SIZES], beside + [[heavy]] * len(SIZES)
    loc, scale = (np.concatenate(arrays) for arrays in zip(*grids, strict=True))
    parts = []
    for family in FAMILIES.values():
        own = neighbouring_parts(len(families), sizes)
        families.append(family(loc=loc, scale=scale))
        parts += [[grid, *more] for grid, others in zip(own, beside, strict=True) for more in others]
    return Candidates(families, parts)


def _even_grids(margin: _Margin, grids: Sequence[tuple[int, float]]) -> tuple[FloatArray, FloatArray]:
    """Evenly spaced locations, and scales in units of their distance; those of all grids, one after the other."""
    sizes = np.array([n for n, _ in grids])
    step = (margin.high - margin.low) / (sizes - 1)
    loc = np.repeat(step, sizes) * np.concatenate([np.arange(n) for n in sizes.tolist()]) + margin.low
    loc[np.cumsum(sizes) - 1] = margin.high
    return loc, np.repeat([max(ratio * margin.spread / (n - 1), margin.least_scale) for n, ratio in grids], sizes)


def _quantile_grid(margin: _Margin, n: int) -> tuple[FloatArray, FloatArray]:
    """Locations at evenly spaced levels, each as wide as its neighbours are apart: fine where rows are dense."""
    loc = margin.quantile((np.arange(n) + 0.5) / n)
    return loc, np.maximum(np.gradient(loc), margin.least_scale)


def _heavy(margin: _Margin) -> Dictionary:
    """Student-t atoms from the quartiles' distance to far in the tails; their means exist, unlike a Cauchy's."""
    lower, upper = margin.quantile([0.25, 0.75])
    narrow = max(float(upper - lower) / 2, margin.least_scale)
    scale = np.geomspace(narrow, max(margin.spread / 6, narrow), 3)
    return Dictionary((StudentT(df=np.array([1.5]), loc=margin.middle, scale=scale),))


def _positive(margin: _Margin) -> Dictionary:
    """Exponential, gamma and log-normal atoms around the quantiles of a positive variable."""
    median = margin.quantile([0.1, 0.25, 0.5, 0.75, 0.9])
    lower, upper = margin.quantile([0.1, 0.9])
    with np.errstate(over="ignore"):  # a ratio may lie beyond the largest number; its logarithm does not
        ratio = np.log(upper / lower)
    log_range = ratio if np.isfinite(ratio) else np.log(upper) - np.log(lower)
    log_std = max(log_range / 2.56, 1e-3)  # 2.56 standard deviations lie between these quantiles
    return Dictionary(
        (
            Exponential(origin=np.zeros(1), scale=median, direction=np.ones(1)),
            Gamma(shape=np.array([2.0]), scale=median / 2),
            LogNormal(log_mean=np.log(median), log_std=np.array([log_std / 2])),
            LogNormal(log_mean=np.log(median[2:3]), log_std=np.array([log_std])),
        )
    )


def _as_kind(variable: Variable, dictionary: Dictionary) -> Dictionary:
    if variable.kind is Kind.CATEGORICAL:
        raise InputError(
            f"dictionaries names {shown(variable.name)}, which is categorical: its dictionary is one atom for each of "
            "its categories, so leave it out."
        )
    return _of_kind(variable, dictionary)


def as_given(variable: Variable, dictionary: Dictionary) -> Dictionary:
    """Return a given dictionary as atoms that the variable can have."""
    return _within(variable, _as_kind(variable, dictionary))


def narrow_atoms(variable: Variable, axis: Axis, counts: FloatArray) -> Dictionary | None:
    """Return narrow atoms to add to a dictionary: what is narrow inside a component may be hidden in the margin."""
    margin = _Margin(variable, axis, counts)
    if margin.is_empty:
        return None
    loc, scale = _quantile_grid(margin, SHARP)
    return margin.atoms(Dictionary((Gaussian(loc=loc, scale=scale),)))
