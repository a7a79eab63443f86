r"""A mixture whose components are Gaussian over a block of columns and products over the others.

.. math::
    f(x) = \sum_r \lambda_r \, N(w(x_C); \mu_r, \Sigma_r) \, |w'(x_C)|
           \prod_{n \notin C} \sum_l B_n[l, r] \, d_{n,l}(x_n)

C are the columns of the block and w their warps. Components follow the correlations of the block, which a product of
one-dimensional laws cannot. Intervals of block columns are windows of Gaussian vectors; see
:mod:`jointwise.joint.window`. How exact the answers are:

=============================================  =====================================================================
answer                                         error
=============================================  =====================================================================
density, gaps, marginals, conditioning on      rounding
values, samples
probabilities, cdf, densities given intervals  1e-12 with one or two windows in a component; with more, a lattice rule
                                               whose estimate `BlockMixture.log_probability_error` gives: 5e-5, and
                                               rarely up to 1e-4, relative
tables of two columns                          1e-15 absolute per cell; under windows elsewhere about 1e-6 relative,
                                               and as above if there are more than two
law of one column given intervals of others    tabulated: about 1e-6 in the cdf, up to correlations of 0.9999; with more
                                               than two windows in a component, 1e-4, and 3e-4 with seven
integers                                       sums of masses agree with probabilities of intervals to 1e-4
covariances                                    exact through straight warps; through bent ones 24 Hermite polynomials;
                                               under windows 8,192 fixed draws a component: 0.01 in a correlation
means of conditionals                          exact through straight warps; 1e-3 standard deviations through others
=============================================  =====================================================================
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp, softmax

from jointwise._checks import reading
from jointwise._typing import FloatArray
from jointwise.dictionary import Dictionary
from jointwise.exceptions import FileFormatError, ImpossibleEventError, InputError
from jointwise.joint.atom_kinds import AtomKinds
from jointwise.joint.block_conditionals import BlockConditionals, WindowedConditionals
from jointwise.joint.block_density import NO_SAY, NUMBER, cells, log_density
from jointwise.joint.block_events import Branches, log_cdf, stacked_blocks
from jointwise.joint.block_gaussian import GaussianBlock
from jointwise.joint.block_margins import column_factor, plain_dictionary
from jointwise.joint.block_moments import component_covariances
from jointwise.joint.block_pairs import pair_tables
from jointwise.joint.block_sampling import complete_block, sample_block
from jointwise.joint.block_tables import density_table, region_table
from jointwise.joint.conditionals import Conditionals
from jointwise.joint.crosstab import crosstab, partition_masses, region_masses
from jointwise.joint.events import Point, Region
from jointwise.joint.expert import BLOCK, Expert, in_blocks
from jointwise.joint.product import (
    MOST_MERGED,
    ProductConditionals,
    ProductMixture,
    draw_atoms,
    draw_positions,
    stacked,
)
from jointwise.joint.simplex import log, simplex

# A component is dropped if its log-weight is this much below the largest: a share of 1e-16.
LEAST_LOG_WEIGHT = -37.0
LARGEST = np.finfo(float).max


@dataclass(frozen=True, eq=False, repr=False)
class BlockMixture(Expert):
    """Weights, a Gaussian block, and the coefficients and dictionaries of the other columns.

    Parameters
    ----------
    weights : array of shape (F,)
        Mixing weights, on the simplex.
    block : GaussianBlock
        The Gaussian laws of d columns.
    columns : tuple of int
        Positions of the block's columns among the N variables, in the order of the block.
    coefficients : sequence of arrays of shape (L_n, F)
        ``B_n`` of each other column, in the order of their positions.
    dictionaries : sequence of Dictionary
        The atoms of each other column.

    Examples
    --------
    >>> from jointwise.warps import Warp
    >>> covariance = [[[1.0, 0.8], [0.8, 1.0]]]
    >>> lines = (Warp.line(0.0, 1.0), Warp.line(0.0, 1.0))
    >>> block = GaussianBlock(lines, [[0.0, 0.0]], covariance, ([], []), (np.empty((0, 1)),) * 2, (False, False))
    >>> f = BlockMixture([1.0], block, (0, 1), (), ())
    >>> f.logpdf(np.array([[0.0, 0.0], [1.0, np.nan]])).round(3)
    array([-1.327, -1.419])
    """

    KIND: ClassVar[str] = "block"

    weights: FloatArray
    block: GaussianBlock
    columns: tuple[int, ...]
    coefficients: tuple[FloatArray, ...]
    dictionaries: tuple[Dictionary, ...]

    def __post_init__(self) -> None:
        weights = simplex(self.weights, "weights", 1)
        coefficients = tuple(simplex(b, f"coefficients[{n}]", 2) for n, b in enumerate(self.coefficients))
        dictionaries, columns = tuple(self.dictionaries), tuple(self.columns)
        if not isinstance(self.block, GaussianBlock) or self.block.n_components != len(weights):
            raise InputError(f"block must be a GaussianBlock with {len(weights)} components, one for each weight.")
        if len(coefficients) != len(dictionaries):
            raise InputError(
                f"A mixture needs one coefficient matrix per dictionary, got {len(coefficients)} and "
                f"{len(dictionaries)}."
            )
        n_variables = self.block.n_columns + len(dictionaries)
        whole = all(isinstance(c, (int, np.integer)) and not isinstance(c, bool) for c in columns)
        if (
            not whole
            or len(set(columns) & set(range(n_variables))) != self.block.n_columns
            or len(columns) != len(set(columns))
        ):
            raise InputError(
                f"columns must be {self.block.n_columns} different positions from 0 to {n_variables - 1}, one for each "
                f"column of the block, got {columns}."
            )
        for n, (b, d) in enumerate(zip(coefficients, dictionaries, strict=True)):
            if b.shape != (d.n_atoms, len(weights)):
                raise InputError(
                    f"coefficients[{n}] must have shape (atoms, components) = ({d.n_atoms}, {len(weights)}), "
                    f"got {b.shape}."
                )
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "columns", tuple(int(c) for c in columns))
        object.__setattr__(self, "coefficients", coefficients)
        object.__setattr__(self, "dictionaries", dictionaries)

    @property
    def n_variables(self) -> int:
        """Number of variables N."""
        return self.block.n_columns + len(self.dictionaries)

    @cached_property
    def others(self) -> tuple[int, ...]:
        """Positions of the columns that are not in the block."""
        return tuple(n for n in range(self.n_variables) if n not in self.columns)

    @cached_property
    def rest(self) -> ProductMixture | None:
        """The mixture of the columns that are not in the block; None if there are none."""
        return ProductMixture(self.weights, self.coefficients, self.dictionaries) if self.others else None

    # ---- density -----------------------------------------------------------------------------------------

    def component_logpdf(self, X: FloatArray) -> FloatArray:
        """Return log lam[r] + log f(x | r) of encoded rows (n, N), missing cells integrated out; shape (n, F).

        Where three or more windows are missed, a component below 1e-10 of another in its row may be -inf.
        """
        log_rest = self._log_rest(X)
        return np.asarray(log_rest + log_density(self.block, X[:, self.columns], log_weights=log_rest))

    def _log_rest(self, X: FloatArray) -> FloatArray:
        """Log-weight of each component, with the likelihood of the cells outside the block; shape (n, F)."""
        if self.rest is None:
            return np.tile(log(self.weights), (len(X), 1))
        return self.rest.component_logpdf(X[:, self.others])

    def cdf(self, X: FloatArray) -> FloatArray:
        """P(X_1 <= x_1, ..., X_N <= x_N), missing cells integrated out; shape (n,).

        With one or two windows the error is about 1e-12, with more at most about 1e-4 of the answer.
        """
        return in_blocks(self._cdf, X)

    def _cdf(self, X: FloatArray) -> FloatArray:
        total = np.tile(log(self.weights), (len(X), 1))
        for n, b, d in zip(self.others, self.coefficients, self.dictionaries, strict=True):
            values, where = np.unique(X[:, n], return_inverse=True)
            below = d.cdf(values) @ b
            below[np.isnan(values)] = 1.0
            total += log(below)[where]
        total += log_cdf(self.block, X[:, self.columns], total)
        return np.asarray(np.minimum(np.exp(logsumexp(total, axis=1)), 1.0))

    def pdf_table(self, points: Sequence[FloatArray]) -> FloatArray:
        """Density at every combination of points, one array of points per variable; of one or two variables only."""
        if self.block.n_columns == 2:
            ordered = [np.asarray(points[c], dtype=float) for c in self.columns]
            table = density_table(self.block, ordered, self.weights)
            return table if self.columns == (0, 1) else table.T
        factors = []
        for n, each in enumerate(points):
            if n in self.columns:
                factors.append(np.exp(log_density(self.block, np.asarray(each, dtype=float)[:, None])))
            else:
                assert self.rest is not None  # it has the other columns
                factors.append(np.exp(self.rest.log_conditionals(self.others.index(n), np.asarray(each, dtype=float))))
        return crosstab(factors, self.weights)

    # ---- one variable ------------------------------------------------------------------------------------

    def factor(self, n: int) -> tuple[Dictionary, FloatArray]:
        """Law of variable ``n`` given each component: atoms, and their weights of shape (atoms, F).

        In a block with windows on other coordinates, laws are tabulated: their cdf has an error of about 1e-6, and
        of 1e-4 with more than two windows.
        """
        if n not in self.columns:
            return self.dictionaries[self.others.index(n)], self.coefficients[self.others.index(n)]
        if n not in self._factors:
            self._factors[n] = column_factor(self.block, self.columns.index(n))
        return self._factors[n]

    @cached_property
    def _factors(self) -> dict[int, tuple[Dictionary, FloatArray]]:
        """Laws of single columns, once asked for."""
        return {}

    def dictionary(self, n: int) -> Dictionary:
        """Atoms of variable ``n``, without what windows elsewhere do to them."""
        if n not in self.columns:
            return self.dictionaries[self.others.index(n)]
        return plain_dictionary(self.block, self.columns.index(n))

    def atom_kinds(self, n: int) -> AtomKinds:
        """Kinds of the atoms that `dictionary` has."""
        if n not in self.columns:
            return super().atom_kinds(n)
        c, block = self.columns.index(n), self.block
        is_continuous = not block.whole[c] and bool((block.no_spike[c] > 0).any())
        return AtomKinds(0, True, is_continuous, block.spikes[c][block.spike_weights[c].any(axis=1)])

    def conditionals(self, n: int, X: FloatArray) -> Conditionals:
        """Law of variable ``n`` in each encoded row, given the row's other cells; its own cell is ignored."""
        others = X.copy()
        others[:, n] = np.nan
        if n not in self.columns:
            return self._other_conditionals(n, others)
        c, rows = self.columns.index(n), others[:, self.columns]
        missed = self.block.has_window.copy()
        missed[: self.block.n_columns] &= (cells(self.block, rows)[0] != NUMBER).any(axis=0)
        missed[c] = False
        kind = WindowedConditionals if missed.any() else BlockConditionals
        return kind(self.block, c, rows, self._log_rest(others))

    def _other_conditionals(self, n: int, X: FloatArray) -> Conditionals:
        assert self.rest is not None  # it has the column
        logs = in_blocks(self.component_logpdf, X)
        impossible = np.isneginf(logs.max(axis=1))
        log_evidence = np.asarray(logsumexp(logs, axis=1))
        logs[impossible] = log(self.weights)
        return ProductConditionals(self.rest, self.others.index(n), np.asarray(softmax(logs, axis=1)), log_evidence)

    # ---- events ------------------------------------------------------------------------------------------

    def log_probability(self, event: Mapping[int, Region]) -> float:
        """Log-probability of a box, given as a region for some of the variables."""
        return self._probability(event)[0]

    def log_probability_error(self, event: Mapping[int, Region]) -> float:
        """Estimate of the relative error of a box's probability.

        It is 0 where no component has more than two windows: then the error is about 1e-12. Else it is that of lattice
        rules, at most about 1e-4.
        """
        return self._probability(event)[1]

    def _probability(self, event: Mapping[int, Region]) -> tuple[float, float]:
        branches = Branches.of(self.block, self._own(event), values=False)
        if not len(branches.parent):
            return -np.inf, 0.0
        log_rest = log(self.weights)
        for n, region in event.items():
            if n not in self.columns:
                log_rest = log_rest + log(region_masses(*self.factor(n), region))
        logs = branches.log_likelihood(log_rest, NO_SAY, each=False)
        total = float(logsumexp(logs))
        errors = branches.block.log_inside[1] + self.block.log_inside[1][branches.parent]
        error = float(np.exp(logs - total) @ errors) if np.isfinite(total) else 0.0
        return min(total, 0.0), error

    def _own(self, event: Mapping[int, Region]) -> dict[int, Region]:
        """Return the part of an event about columns of the block, by their places in it."""
        return {self.columns.index(n): region for n, region in event.items() if n in self.columns}

    def crosstab(self, regions: Mapping[int, Sequence[Region]]) -> FloatArray:
        """Probability of each combination of regions, one dimension per variable of ``regions``.

        An interval does not count the points that are regions of their own.
        """
        own = [n for n in regions if n in self.columns]
        factors = [partition_masses(*self.factor(n), regions[n]) for n in regions if n not in own]
        if own:
            table = region_table(self.block, [self.columns.index(n) for n in own], [regions[n] for n in own])
            shape = table.shape[:-1]
            factors.insert(0, table.reshape(-1, self.n_components))
        else:
            shape = ()
        out = crosstab(factors, self.weights)
        out = out.reshape(*shape, *(len(regions[n]) for n in regions if n not in own))
        order = [*own, *(n for n in regions if n not in own)]
        return np.asarray(out.transpose([order.index(n) for n in regions]))

    def pair_tables(
        self, regions: Mapping[int, Sequence[Region]], pairs: Sequence[tuple[int, int]]
    ) -> list[FloatArray]:
        """`crosstab` of each of many pairs of different variables."""
        if self.block.has_window.any():
            return super().pair_tables(regions, pairs)
        place = {n: c for c, n in enumerate(self.columns)}
        inside = [(a, b) for a, b in pairs if a in place and b in place]
        own = {place[n]: regions[n] for pair in inside for n in pair}
        found = pair_tables(self.block, self.weights, own, [(place[a], place[b]) for a, b in inside])
        tables = dict(zip(inside, found, strict=True))
        alone = {
            n: self._masses_alone(n, regions[n]) for n in {n for pair in pairs if pair not in tables for n in pair}
        }
        return [tables[a, b] if (a, b) in tables else crosstab([alone[a], alone[b]], self.weights) for a, b in pairs]

    def _masses_alone(self, n: int, regions: Sequence[Region]) -> FloatArray:
        """Mass of each region of one variable under each component; shape (regions, F)."""
        if n in self.columns:
            return region_table(self.block, [self.columns.index(n)], [regions])
        return partition_masses(*self.factor(n), regions)

    def marginal(self, keep: Sequence[int]) -> Expert:
        """Expert of the variables at the positions ``keep``; of products if none of them is in the block."""
        inside = [n for n in keep if n in self.columns]
        places = [self.others.index(n) for n in keep if n not in self.columns]
        coefficients = tuple(self.coefficients[k] for k in places)
        dictionaries = tuple(self.dictionaries[k] for k in places)
        if not inside:
            return ProductMixture(self.weights, coefficients, dictionaries)
        block = self.block.marginal([self.columns.index(n) for n in inside])
        columns = tuple(k for k, n in enumerate(keep) if n in self.columns)
        return BlockMixture(self.weights, block, columns, coefficients, dictionaries)

    def condition(self, event: Mapping[int, Region]) -> Expert:
        """Expert given ``event``; a point takes its variable out, an interval or a set truncates it."""
        return self.given(event)[1]

    def given(self, event: Mapping[int, Region]) -> tuple[float, Expert]:
        """Log-probability of an event without points, and the expert given it, with the same windows."""
        left = [n for n in range(self.n_variables) if not isinstance(event.get(n), Point)]
        columns = tuple(self.columns.index(n) for n in left if n in self.columns)
        branches = Branches.of(self.block, self._own(event), values=True)
        log_rest, coefficients, dictionaries = self._given_rest(event)
        branches = branches.likely(log_rest).reduced(columns)
        logs = branches.log_likelihood(log_rest, -LEAST_LOG_WEIGHT, each=True)
        alive = np.flatnonzero(logs > max(logs.max(initial=-np.inf), -LARGEST) + LEAST_LOG_WEIGHT)
        if not alive.size:
            raise ImpossibleEventError("The event has probability zero, so there is nothing to condition on.")
        total = min(float(logsumexp(logs)), 0.0)
        weights, parent = np.asarray(softmax(logs[alive])), branches.parent[alive]
        kept = [k for k, n in enumerate(self.others) if not isinstance(event.get(n), Point)]
        others = tuple(coefficients[k][:, parent] for k in kept), tuple(dictionaries[k] for k in kept)
        if not columns:
            return total, ProductMixture(weights, *others)
        places = tuple(left.index(self.columns[c]) for c in columns)
        return total, BlockMixture(weights, branches.block.take(alive), places, *others)

    def _given_rest(self, event: Mapping[int, Region]) -> tuple[FloatArray, list[FloatArray], list[Dictionary]]:
        """Return log-weights with the likelihood of what is given outside the block, and what is left of it."""
        log_weights = log(self.weights)
        coefficients, dictionaries = list(self.coefficients), list(self.dictionaries)
        for k, n in enumerate(self.others):
            region = event.get(n)
            if region is None:
                continue
            assert self.rest is not None  # it has the column
            if isinstance(region, Point):
                log_masses = self.rest.log_conditionals(k, np.array([region.value]))[0]
            else:
                log_masses, coefficients[k], dictionaries[k] = self.rest.restrict(k, region)
            log_weights = log_weights + log_masses
        return log_weights, coefficients, dictionaries

    # ---- moments and samples -----------------------------------------------------------------------------

    def covariance(self) -> FloatArray:
        """Covariance matrix; shape (N, N).

        Variances are those of the margins. Covariances of block columns are exact through straight warps; through
        others they come from 24 Hermite polynomials, and under windows from fixed draws (a correlation to about 0.01).
        """
        used = self.weights > 0
        margins = [self.margin(n) for n in range(self.n_variables)]
        by_component = np.stack([self.component_means(n) for n in range(self.n_variables)])[:, used]
        with np.errstate(invalid="ignore", over="ignore"):  # inf - inf: what has no mean stays NaN
            centred = by_component - np.array([margin.mean() for margin in margins])[:, None]
            out = np.asarray((centred * self.weights[used]) @ centred.T)
        within = np.einsum("r,rij->ij", self.weights, component_covariances(self.block))
        out[np.ix_(self.columns, self.columns)] += within
        np.fill_diagonal(out, [margin.var() for margin in margins])
        return out

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """``n`` independent encoded rows; shape (n, N)."""
        counts = rng.multinomial(n, self.weights)
        component = rng.permutation(np.repeat(np.arange(self.n_components), counts))
        out = np.empty((n, self.n_variables))
        out[:, self.columns] = sample_block(self.block, component, rng)
        for k, b, d in zip(self.others, self.coefficients, self.dictionaries, strict=True):
            out[:, k] = d.sample(draw_atoms(b, component, rng), rng)
        return out

    def complete(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Encoded rows with the missing cells of each drawn together, given its observed cells; shape (n, N)."""
        out = X.copy()
        incomplete = np.flatnonzero(np.isnan(X).any(axis=1))
        for start in range(0, len(incomplete), BLOCK):
            rows = incomplete[start : start + BLOCK]
            out[rows] = np.where(np.isnan(X[rows]), self._complete(X[rows], rng), X[rows])
        return out

    def _complete(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        logs = self.component_logpdf(X)
        impossible = np.isneginf(logs.max(axis=1))
        if impossible.any():
            X = X.copy()
            X[impossible] = self.without_impossible_cells(X[impossible])
            logs[impossible] = self.component_logpdf(X[impossible])
        component = draw_positions(np.asarray(softmax(logs, axis=1)), rng)
        out = X.copy()
        out[:, self.columns] = complete_block(self.block, component, X[:, self.columns], rng)
        for n, b, d in zip(self.others, self.coefficients, self.dictionaries, strict=True):
            gaps = np.isnan(X[:, n])
            out[gaps, n] = d.sample(draw_atoms(b, component[gaps], rng), rng)
        return out

    # ---- sums and plain form -----------------------------------------------------------------------------

    @cached_property
    def merge_key(self) -> Hashable:
        """What two mixtures must share to be merged: places and warps of the block's columns, and dictionaries."""
        parts = [(warp.x, warp.w, warp.slopes) for warp in self.block.warps]
        knots = tuple(array.tobytes() for part in parts for array in part)
        spikes = tuple(each.tobytes() for each in self.block.spikes)
        hidden = self.block.n_coordinates - self.block.n_columns
        return self.columns, self.block.whole, knots, spikes, hidden, len(self.dictionaries)

    @classmethod
    def mix(cls, experts: Sequence[BlockMixture], weights: FloatArray) -> BlockMixture | None:
        """Weighted sum of mixtures with equal `merge_key`, as one mixture: all their components.

        A dictionary that several mixtures share appears once. The result is None if it would be very large.
        """
        if len(experts) == 1:
            return experts[0]
        n_components = sum(expert.n_components for expert in experts)
        models = [expert.dictionaries for expert in experts]
        distinct = [{id(d): d for d in column}.values() for column in zip(*models, strict=True)]
        if n_components * sum(d.n_atoms for each in distinct for d in each) > MOST_MERGED:
            return None
        block = stacked_blocks([expert.block for expert in experts])
        dictionaries, coefficients = (
            stacked(models, [expert.coefficients for expert in experts]) if models[0] else ([], [])
        )
        mixing = np.concatenate([w * expert.weights for w, expert in zip(weights, experts, strict=True)])
        return cls(mixing, block, experts[0].columns, tuple(coefficients), tuple(dictionaries))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values and arrays, which a file can hold."""
        return {
            "kind": self.KIND,
            "weights": self.weights,
            "block": self.block.to_dict(),
            "columns": list(self.columns),
            "coefficients": list(self.coefficients),
            "dictionaries": [d.to_dict() for d in self.dictionaries],
        }

    @classmethod
    @reading("a block mixture as written by `to_dict`")
    def from_dict(cls, data: Mapping[str, Any]) -> BlockMixture:
        """Read what `to_dict` returned."""
        parts = {"kind", "weights", "block", "columns", "coefficients", "dictionaries"}
        if not isinstance(data, Mapping) or set(data) != parts or data["kind"] != cls.KIND:
            raise FileFormatError(f"an expert of kind {cls.KIND} must have the parts {', '.join(sorted(parts))}")
        return cls(
            data["weights"],
            GaussianBlock.from_dict(data["block"]),
            tuple(data["columns"]),
            tuple(data["coefficients"]),
            tuple(Dictionary.from_dict(d) for d in data["dictionaries"]),
        )
