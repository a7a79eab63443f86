"""Sums of experts of any kinds, which are experts too."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp, softmax

from jointwise._checks import shown
from jointwise._typing import BoolArray, FloatArray, IntArray
from jointwise.axes import Axis
from jointwise.dictionary import Dictionary
from jointwise.exceptions import ImpossibleEventError, InputError
from jointwise.joint.atom_kinds import AtomKinds
from jointwise.joint.conditionals import Conditionals
from jointwise.joint.events import Point, Region
from jointwise.joint.expert import Expert
from jointwise.joint.margin import Margin
from jointwise.joint.product import draw_positions, stacked
from jointwise.joint.simplex import ROUNDING


def mixed(experts: Sequence[Expert], weights: ArrayLike) -> Expert:
    """Weighted sum of experts of the same variables, as one expert.

    Sums among them are taken apart, experts without weight are dropped, and those that can be merged into one of their
    kind are. A single expert is returned as it is.

    Parameters
    ----------
    experts : sequence of K experts
    weights : array of shape (K,)
        Not negative, scaled to sum to one.

    Examples
    --------
    >>> from jointwise.joint import ProductMixture
    >>> coin = Dictionary.categories(2)
    >>> fair, heads = (ProductMixture([1.0], [[[p], [1 - p]]], [coin]) for p in (0.5, 1.0))
    >>> both = mixed([fair, heads], [1, 3])
    >>> type(both).__name__, both.weights
    ('ProductMixture', array([0.25, 0.75]))
    >>> mixed([fair, heads], [1, 0]) is fair
    True
    """
    groups: dict[Hashable, list[tuple[Expert, float]]] = {}
    for expert, weight in zip(experts, mixing_weights(weights, len(experts)), strict=True):
        for part, share in parts_of(expert):
            if weight * share > 0:
                key = id(part) if part.merge_key is None else (type(part), part.merge_key)
                groups.setdefault(key, []).append((part, weight * share))
    parts = [each for group in groups.values() for each in _merged(group)]
    if len(parts) == 1:
        return parts[0][0]
    return WeightedSum(tuple(expert for expert, _ in parts), np.array([share for _, share in parts]))


def parts_of(expert: Expert) -> list[tuple[Expert, float]]:
    """Experts that ``expert`` is the sum of, with their shares; itself if it is no sum."""
    if isinstance(expert, WeightedSum):
        return list(zip(expert.experts, expert.shares.tolist(), strict=True))
    return [(expert, 1.0)]


def _merged(group: list[tuple[Expert, float]]) -> list[tuple[Expert, float]]:
    """Experts of one kind as one, or as they are if that is not worthwhile."""
    experts, shares = zip(*group, strict=True)
    total = sum(shares)
    same = all(expert is experts[0] for expert in experts)
    one = experts[0] if same else type(experts[0]).mix(experts, np.array(shares) / total)
    return group if one is None else [(one, total)]


@dataclass(frozen=True, eq=False, repr=False)
class WeightedSum(Expert):
    r"""Weighted sum of experts of the same variables.

    .. math:: f(x) = \sum_k w_k f_k(x)

    Its components are those of all parts, with weights :math:`w_k \lambda_{k,r}`. `mixed` builds it, and merges parts
    where it can.

    Parameters
    ----------
    experts : sequence of K experts
    shares : array of shape (K,)
        Their weights :math:`w_k`, positive, scaled to sum to one.

    Examples
    --------
    >>> from jointwise.joint import ProductMixture
    >>> coin = Dictionary.categories(2)
    >>> both = WeightedSum([ProductMixture([1.0], [[[p], [1 - p]]], [coin]) for p in (0.5, 1.0)], [0.5, 0.5])
    >>> np.exp(both.logpdf(np.array([[0.0], [1.0]])))
    array([0.75, 0.25])
    """

    experts: tuple[Expert, ...]
    shares: FloatArray
    weights: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        experts = tuple(self.experts)
        if not experts or len({expert.n_variables for expert in experts}) != 1:
            raise InputError("A sum needs one or more experts of the same variables.")
        shares = mixing_weights(self.shares, len(experts))
        if not (shares > 0).all():
            raise InputError(f"The shares of a sum must be positive, got {shown(self.shares)}; see `mixed`.")
        weights = np.concatenate([w * expert.weights for w, expert in zip(shares, experts, strict=True)])
        for array in (shares, weights):
            array.flags.writeable = False
        object.__setattr__(self, "experts", experts)
        object.__setattr__(self, "shares", shares)
        object.__setattr__(self, "weights", weights)

    @property
    def n_variables(self) -> int:
        """Number of variables N."""
        return self.experts[0].n_variables

    @property
    def has_independent_components(self) -> bool:
        """Whether the variables are independent given the component, in all parts."""
        return all(expert.has_independent_components for expert in self.experts)

    # ---- density -----------------------------------------------------------------------------------------

    def component_logpdf(self, X: FloatArray) -> FloatArray:
        """Return the log-density of encoded rows (n, N) with each component of each part; shape (n, F)."""
        found = []
        for k, expert in enumerate(self.experts):
            logs = np.log(self.shares[k]) + expert.component_logpdf(X)
            logs[self._at_foreign_spikes(k, X)] = -np.inf
            found.append(logs)
        return np.hstack(found)

    def logpdf(self, X: FloatArray) -> FloatArray:
        """Log-density of encoded rows ``X`` of shape (n, N), missing cells integrated out; shape (n,)."""
        return np.asarray(logsumexp(self._part_logpdf(X), axis=1))

    def _part_logpdf(self, X: FloatArray) -> FloatArray:
        """Return log w_k + log f_k(x); shape (n, K)."""
        out = np.empty((len(X), len(self.experts)))
        for k, expert in enumerate(self.experts):
            logs = np.log(self.shares[k]) + expert.logpdf(X)
            out[:, k] = np.where(self._at_foreign_spikes(k, X), -np.inf, logs)
        return out

    def cdf(self, X: FloatArray) -> FloatArray:
        """P(X_1 <= x_1, ..., X_N <= x_N), missing cells integrated out; shape (n,)."""
        return np.minimum(self._mean([expert.cdf(X) for expert in self.experts]), 1.0)

    def pdf_table(self, points: Sequence[FloatArray]) -> FloatArray:
        """Density at every combination of points, one array of points per variable; of one or two variables only."""
        tables = []
        for k, expert in enumerate(self.experts):
            table = expert.pdf_table(points)
            for n, each in enumerate(points):
                table[(slice(None),) * n + (np.isin(each, self._foreign_spikes[k].get(n, ())),)] = 0.0
            tables.append(table)
        return self._mean(tables)

    def _mean(self, values: Sequence[FloatArray]) -> FloatArray:
        """Mean of what each part says, by their shares."""
        return np.asarray(sum(w * value for w, value in zip(self.shares, values, strict=True)))

    # A part with a density of a variable has density zero where another part has a point mass, because the base measure
    # of the sum has a unit mass there.

    @cached_property
    def _foreign_spikes(self) -> tuple[dict[int, FloatArray], ...]:
        """For each part, by variable: the point masses of other parts where this part has a density."""
        found: tuple[dict[int, FloatArray], ...] = tuple({} for _ in self.experts)
        for n in range(self.n_variables):
            kinds = [expert.atom_kinds(n) for expert in self.experts]
            if not any(each.spikes.size for each in kinds):
                continue
            spikes = AtomKinds.joined(kinds).spikes
            for own, each in zip(found, kinds, strict=True):
                others = np.setdiff1d(spikes, each.spikes)
                if each.is_continuous and others.size:
                    own[n] = others
        return found

    def _at_foreign_spikes(self, k: int, X: FloatArray) -> BoolArray:
        """Which rows have a cell where another part than the k-th has a point mass; shape (n,)."""
        out = np.zeros(len(X), dtype=bool)
        for n, values in self._foreign_spikes[k].items():
            out |= np.isin(X[:, n], values)
        return out

    # ---- one variable ------------------------------------------------------------------------------------

    def factor(self, n: int) -> tuple[Dictionary, FloatArray]:
        """Law of variable ``n`` given each component: atoms of all parts, and their weights of shape (atoms, F)."""
        dictionaries, coefficients = zip(*(expert.factor(n) for expert in self.experts), strict=True)
        ((dictionary,), (block,)) = stacked([[d] for d in dictionaries], [[b] for b in coefficients])
        return dictionary, block

    def dictionary(self, n: int) -> Dictionary:
        """Atoms of variable ``n`` in all parts; a dictionary that several parts share appears once."""
        dictionaries = [expert.dictionary(n) for expert in self.experts]
        return _together({id(d): d for d in dictionaries}.values())

    def atom_kinds(self, n: int) -> AtomKinds:
        """Kinds of the atoms of all parts."""
        return AtomKinds.joined([expert.atom_kinds(n) for expert in self.experts])

    def margin(self, n: int) -> Margin:
        """Law of variable ``n`` alone."""
        margins = [expert.margin(n) for expert in self.experts]
        weights = [w * margin.weights for w, margin in zip(self.shares, margins, strict=True)]
        return Margin(_together(margin.dictionary for margin in margins), np.concatenate(weights))

    def component_means(self, n: int) -> FloatArray:
        """E[X_n | component], NaN where an atom in use has no mean; shape (F,)."""
        return np.concatenate([expert.component_means(n) for expert in self.experts])

    def component_masses(self, n: int, axis: Axis) -> FloatArray:
        """Probability of each bin of an axis of variable ``n`` given each component of each part; (n_bins, F)."""
        return np.hstack([expert.component_masses(n, axis) for expert in self.experts])

    def conditionals(self, n: int, X: FloatArray) -> Conditionals:
        """Law of variable ``n`` in each encoded row, given the row's other cells; its own cell is ignored."""
        return self._joined(n, X, [expert.conditionals(n, X) for expert in self.experts])

    def gaps(self, X: FloatArray) -> Iterator[tuple[int, IntArray, Conditionals]]:
        """Yield each variable with missing cells, the rows that miss it, and its law in those rows."""
        for found in zip(*(expert.gaps(X) for expert in self.experts), strict=True):
            n, rows, _ = found[0]
            yield n, rows, self._joined(n, X[rows], [law for _, _, law in found])

    def _joined(self, n: int, X: FloatArray, laws: list[Conditionals]) -> SumConditionals:
        """Return the law of variable ``n`` in each row, from those of the parts."""
        others = X.copy()
        others[:, n] = np.nan
        logs = np.column_stack([np.log(w) + law.log_evidence for w, law in zip(self.shares, laws, strict=True)])
        for k in range(len(laws)):
            logs[self._at_foreign_spikes(k, others), k] = -np.inf
        return SumConditionals(laws, logs, [spikes.get(n, np.empty(0)) for spikes in self._foreign_spikes])

    # ---- events ------------------------------------------------------------------------------------------

    def log_probability(self, event: Mapping[int, Region]) -> float:
        """Log-probability of a box, given as a region for some of the variables."""
        logs = [expert.log_probability(event) for expert in self.experts]
        return min(float(logsumexp(logs, b=self.shares)), 0.0)

    def crosstab(self, regions: Mapping[int, Sequence[Region]]) -> FloatArray:
        """Probability of each combination of regions, one dimension per variable of ``regions``."""
        return self._mean([expert.crosstab(regions) for expert in self.experts])

    def pair_tables(
        self, regions: Mapping[int, Sequence[Region]], pairs: Sequence[tuple[int, int]]
    ) -> list[FloatArray]:
        """`crosstab` of each of many pairs of different variables."""
        parts = [expert.pair_tables(regions, pairs) for expert in self.experts]
        return [self._mean(tables) for tables in zip(*parts, strict=True)]

    def marginal(self, keep: Sequence[int]) -> Expert:
        """Sum of the parts' marginals."""
        return mixed([expert.marginal(keep) for expert in self.experts], self.shares)

    def condition(self, event: Mapping[int, Region]) -> Expert:
        """Sum of the parts given ``event``, each with its weight times the evidence of the event in it."""
        points = {n: region for n, region in event.items() if isinstance(region, Point)}
        row = np.full((1, self.n_variables), np.nan)
        for n, point in points.items():
            row[0, n] = point.value
        found, logs = [], []
        for expert, log_density in zip(self.experts, self._part_logpdf(row)[0], strict=True):
            if log_density > -np.inf:
                log_evidence, rest = _given(expert, points, {n: r for n, r in event.items() if n not in points})
                if rest is not None:
                    found.append(rest)
                    logs.append(log_density + log_evidence)
        if not found:
            raise ImpossibleEventError("The event has probability zero, so there is nothing to condition on.")
        return mixed(found, softmax(logs))

    # ---- moments and samples -----------------------------------------------------------------------------

    def covariance(self) -> FloatArray:
        """Cov[X] = sum_k w_k (Cov_k[X] + (E_k[X] - E[X]) (E_k[X] - E[X])'), the law of total covariance; (N, N)."""
        variables = range(self.n_variables)
        means = np.array([[expert.margin(n).mean() for n in variables] for expert in self.experts])
        with np.errstate(invalid="ignore", over="ignore"):  # inf - inf: what has no mean stays NaN
            centred = means - self.shares @ means
            within = self._mean([expert.covariance() for expert in self.experts])
            out = np.asarray(within + (centred.T * self.shares) @ centred)
        np.fill_diagonal(out, [self.margin(n).var() for n in variables])
        return out

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """``n`` independent encoded rows; shape (n, N)."""
        counts = rng.multinomial(n, self.shares)
        rows = [expert.sample(int(count), rng) for expert, count in zip(self.experts, counts, strict=True)]
        return np.asarray(rng.permutation(np.concatenate(rows)))

    def complete(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Encoded rows with the missing cells of each drawn together, given its observed cells; shape (n, N).

        A row's part is drawn once, by the evidence of the observed cells, and completes the row.
        """
        out = X.copy()
        incomplete = np.flatnonzero(np.isnan(X).any(axis=1))
        if not incomplete.size:
            return out
        known = X[incomplete]
        logs = self._part_logpdf(known)
        impossible = np.isneginf(logs.max(axis=1))
        if impossible.any():
            known[impossible] = self.without_impossible_cells(known[impossible])
            logs[impossible] = self._part_logpdf(known[impossible])
        part = draw_positions(np.asarray(softmax(logs, axis=1)), rng)
        for k, expert in enumerate(self.experts):
            known[part == k] = expert.complete(known[part == k], rng)
        out[incomplete] = np.where(np.isnan(X[incomplete]), known, X[incomplete])
        return out

    # ---- plain form --------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return plain values and arrays: the parts and their weights."""
        return {"weights": self.shares, "experts": [expert.to_dict() for expert in self.experts]}


class SumConditionals(Conditionals):
    """Law of one variable in each of n rows: the laws of K parts, each with its share of the row's evidence.

    Parameters
    ----------
    laws : sequence of K Conditionals
    logs : array of shape (n, K)
        Log-density of the other cells of each row in each part, with the weight of the part.
    foreign : sequence of K arrays
        Values at which the density of each part counts as zero, since others have point masses there.
    """

    def __init__(self, laws: Sequence[Conditionals], logs: FloatArray, foreign: Sequence[FloatArray]) -> None:
        self.log_evidence = np.asarray(logsumexp(logs, axis=1))
        # an impossible row has some law, as in the parts
        self._shares = np.asarray(softmax(np.where(np.isneginf(self.log_evidence)[:, None], 0.0, logs), axis=1))
        self._laws, self._foreign = laws, foreign

    def pdf(self, points: FloatArray) -> FloatArray:
        """Density of each row's law at each of the points; shape (n, points)."""
        out = np.zeros((len(self._shares), len(points)))
        for share, law, foreign in zip(self._shares.T, self._laws, self._foreign, strict=True):
            counts = (share[:, None] > 0) & ~np.isin(points, foreign)
            out += share[:, None] * np.where(counts, law.pdf(points), 0.0)
        return out

    def cdf(self, x: FloatArray) -> FloatArray:
        """P(X <= x[i]) in each row i; shape (n,)."""
        return self._mean([law.cdf(x) for law in self._laws])

    def cdf_in(self, rows: IntArray, x: FloatArray) -> FloatArray:
        """P(X <= x[k]) in row rows[k]; shape (len(rows),)."""
        return self._mean([law.cdf_in(rows, x) for law in self._laws], rows)

    @property
    def whole(self) -> bool:
        """Whether the variable holds integers alone, in all parts."""
        return all(law.whole for law in self._laws)

    @property
    def jumps(self) -> FloatArray:
        """Values at which the cdf of some part may jump."""
        return np.unique(np.concatenate([law.jumps for law in self._laws]))

    def mean(self) -> FloatArray:
        """Mean in each row, NaN where a part with a share has none; shape (n,)."""
        return self._mean([law.mean() for law in self._laws])

    def _mean(self, values: Sequence[FloatArray], rows: IntArray | slice = slice(None)) -> FloatArray:
        """Mean of what the parts say of each of some rows; a part without a share has no say."""
        shares = self._shares[rows]
        return np.asarray(np.where(shares > 0, shares * np.column_stack(values), 0.0).sum(axis=1))

    def bracket(self, q: float) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest end of the brackets of the parts; shapes (n,)."""
        low, high = (np.column_stack(ends) for ends in zip(*(law.bracket(q) for law in self._laws), strict=True))
        used = self._shares > 0
        return np.where(used, low, np.inf).min(axis=1), np.where(used, high, -np.inf).max(axis=1)


def mixing_weights(weights: ArrayLike, n: int) -> FloatArray:
    """Checked weights of ``n`` parts of a sum, scaled to sum to one; shape (n,)."""
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"`weights` must be {n} numbers; got {shown(weights)}.") from error
    if array.shape != (n,) or not np.isfinite(array).all() or (array < 0).any() or not array.any():
        raise InputError(f"`weights` must be {n} numbers, none negative and not all zero; got {shown(weights)}.")
    # a sum that is one but for rounding is left alone, so that a file read back gives the same bits
    if array.max() <= 1 and abs(array.sum() - 1) < ROUNDING:
        return array.copy()
    return np.asarray(array / array.max() / (array / array.max()).sum())


def _together(dictionaries: Iterable[Dictionary]) -> Dictionary:
    """Return the atoms of all dictionaries, in their order."""
    return Dictionary(tuple(family for dictionary in dictionaries for family in dictionary.families))


def _given(expert: Expert, points: Mapping[int, Region], others: Mapping[int, Region]) -> tuple[float, Expert | None]:
    """Return the log-probability of ``others`` given ``points``, and the expert given both; None if impossible."""
    rest = [n for n in range(expert.n_variables) if n not in points]
    moved = {rest.index(n): region for n, region in others.items()}
    try:
        expert = expert.condition(points) if points else expert
        return expert.given(moved) if moved else (0.0, expert)
    except ImpossibleEventError:
        return -np.inf, None
