"""Design: what of a fit follows from the columns alone, before any component is fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jointwise._typing import FloatArray
from jointwise.axes import Axis, BinnedAxis
from jointwise.dictionary import Dictionary
from jointwise.engines.atoms import StackedAtoms
from jointwise.engines.blocks import BlockLayout
from jointwise.fitting.blocks.columns import choose_columns, found_once, interval_values, of_block
from jointwise.fitting.blocks.joint_warps import joint_warps
from jointwise.fitting.blocks.warps import Counted, bounded, log, power, scores, straight
from jointwise.fitting.choice.dictionaries import choose_dictionaries
from jointwise.fitting.counted import Counts, merged_counts
from jointwise.fitting.possible import UNMET_ROWS, made_possible
from jointwise.fitting.problem import all_masses, margin_prior
from jointwise.joint.block import BlockMixture
from jointwise.joint.block_gaussian import GaussianBlock
from jointwise.joint.expert import Expert
from jointwise.joint.product import ProductMixture
from jointwise.rows.base import Rows
from jointwise.solvers import simplex_weights
from jointwise.solvers.blocks_em import BlockFactors, BlocksProblem
from jointwise.tables.variables import Kind, Schema, Variable
from jointwise.warps import Warp

# Share of a column's variance, and of a row for each row of the table, that keeps covariances from being singular.
TRACE, TRACE_PER_ROW = 1e-7, 1e-13


@dataclass(frozen=True, eq=False)
class Design:
    """The block and its warps, and the dictionaries of the other columns.

    Parameters
    ----------
    schema : Schema
    axes : tuple of Axis
        Fine for the columns of the block, coarse for the others.
    columns : tuple of int
        Positions of the block's columns.
    left_out : mapping of str to str
        Why each other column is not in the block.
    warps : tuple of Warp
        One for each column of the block.
    dictionaries : tuple of Dictionary
        One for each other column.
    slopes : array of shape (d,)
        Root mean square slope of each warp over the rows.
    spreads : array of shape (d,)
        Variance of each column of the block, in its units w.
    chosen : mapping of str to Dictionary
        The dictionaries behind warps and other columns, by name.
    atoms : StackedAtoms
        Bin masses of the dictionaries, of the other columns.
    """

    schema: Schema
    axes: tuple[Axis, ...]
    columns: tuple[int, ...]
    left_out: dict[str, str]
    warps: tuple[Warp, ...]
    dictionaries: tuple[Dictionary, ...]
    slopes: FloatArray
    spreads: FloatArray
    chosen: Mapping[str, Dictionary]
    atoms: StackedAtoms

    @classmethod
    def of(
        cls,
        rows: Rows,
        coarse: Sequence[Axis],
        warp: str,
        rng: np.random.Generator,
        known: Mapping[str, Dictionary] | None = None,
    ) -> Design:
        """Return the design for rows with fine axes.

        Parameters
        ----------
        rows : Rows
        coarse : sequence of Axis
            The axes that dictionaries are chosen on.
        warp : "none", "power", "log", "scores" or "joint"
        rng : numpy.random.Generator
            Deals counts to folds.
        known : mapping of str to Dictionary, optional
            Dictionaries of columns for which they are chosen already.
        """
        member = choose_columns(rows)
        others = [n for n in range(len(rows.schema)) if n not in member.columns]
        fitted = sorted([*others, *(member.columns if warp == "scores" else ())])
        chosen = {n: known[name] for n in fitted if known and (name := rows.schema.names[n]) in known}
        further = [n for n in fitted if n not in chosen]
        chosen |= _chosen(rows, coarse, further, rng)
        warps = _warps(warp, rows, coarse, member.columns, chosen)
        slopes, spreads = [], []
        for n, own in zip(member.columns, warps, strict=True):
            column = of_block(rows, n)
            w = own(column.values)
            slopes.append(_root_mean_square(column, own.log_slope(column.values)))
            spreads.append(column.mean_of((w - column.mean_of(w)) ** 2))
        axes = tuple(rows.axes[n] if n in member.columns else coarse[n] for n in range(len(coarse)))
        dictionaries = tuple(chosen[n] for n in others)
        return cls(
            rows.schema,
            axes,
            member.columns,
            member.left_out,
            tuple(warps),
            dictionaries,
            np.array(slopes),
            np.array(spreads),
            {rows.schema.names[n]: dictionary for n, dictionary in chosen.items()},
            _atoms(rows, dictionaries, [coarse[n] for n in others]),
        )

    @cached_property
    def others(self) -> tuple[int, ...]:
        """Positions of the columns that are not in the block."""
        return tuple(n for n in range(len(self.axes)) if n not in self.columns)

    @cached_property
    def whole(self) -> tuple[bool, ...]:
        """Which columns of the block hold integers."""
        return tuple(self.schema.variables[n].kind is Kind.INTEGER for n in self.columns)

    @cached_property
    def layout(self) -> BlockLayout:
        """The layout of passes over rows with `axes`."""
        values = [warp(interval_values(self.axes[n])) for n, warp in zip(self.columns, self.warps, strict=True)]
        return BlockLayout(tuple(axis.n_bins for axis in self.axes), self.columns, tuple(values), self.others)

    def coded(self, rows: Rows) -> Rows:
        """Return rows with `axes`."""
        same = all(own is other for own, other in zip(self.axes, rows.axes, strict=True))
        return rows if same else found_once(rows, ("coded", self.columns), lambda: rows.regrouped(self.axes))

    def problem(self, rows: Rows, nu: float, beta: float) -> BlocksProblem:
        """Return the problem of fitting rows with `axes`; its scale is that of independent columns."""
        margins = self._margins(rows)
        shares, centre = [], np.zeros(len(self.columns))
        for c, (n, w) in enumerate(zip(self.columns, self.layout.values, strict=True)):
            counts = rows.marginal(n)
            inside = counts[: len(w)]
            seen = np.concatenate([[inside.sum()], counts[len(w) :]]) + UNMET_ROWS
            shares.append(seen / seen.sum())
            centre[c] = inside @ w / max(float(inside.sum()), 1e-300)
        trace = np.maximum(
            max(TRACE, TRACE_PER_ROW * rows.n_rows) * self.spreads, (self._steps * self.slopes) ** 2 / 12
        )
        return BlocksProblem(
            rows.block_engine(self.layout),
            rows.n_rows,
            self.atoms,
            margins,
            tuple(shares),
            centre,
            np.diag(self.spreads + trace),
            trace,
            np.where(self.whole, self.slopes, 0.0) if self.columns else np.zeros(0),
            nu,
            beta,
        )

    def _margins(self, rows: Rows) -> tuple[FloatArray, ...]:
        """Return the coefficients of the other columns' own fits."""

        def find() -> tuple[StackedAtoms, tuple[FloatArray, ...]]:
            margins = (
                simplex_weights(masses, rows.marginal(n), prior=margin_prior(dictionary, rows.n_rows))
                for n, masses, dictionary in zip(self.others, self.atoms.masses, self.dictionaries, strict=True)
            )
            return self.atoms, tuple(margins)

        return found_once(rows, ("margins", id(self.atoms)), find)[1]  # the atoms are kept too, so their id is theirs

    @cached_property
    def _steps(self) -> FloatArray:
        """Distance that values of the block's columns are rounded to, zero for none; shape (d,)."""
        steps = [
            1.0 if self.schema.variables[n].kind is Kind.INTEGER else self.schema.variables[n].step
            for n in self.columns
        ]
        return np.array(steps, dtype=np.float64)

    def expert(self, factors: BlockFactors, rows: Rows) -> Expert:
        """Return the mixture that factors are the parameters of, which leaves no row impossible; see `made_possible`.

        Parameters
        ----------
        factors : BlockFactors
        rows : Rows
            What they were fitted to, with `axes`.
        """
        coefficients, dictionaries = factors.coefficients, self.dictionaries
        if dictionaries:
            counts = Counts(rows.schema, self.axes, rows.column_counts).take(self.others)
            others = made_possible(ProductMixture(factors.weights, coefficients, dictionaries), counts)
            if not self.columns:
                return others
            coefficients, dictionaries = others.coefficients, others.dictionaries
        block = GaussianBlock(
            self.warps,
            factors.means,
            factors.covariances,
            tuple(self._spikes(n) for n in self.columns),
            tuple(self._spike_weights(factors, c) for c in range(len(self.columns))),
            self.whole,
        )
        return BlockMixture(factors.weights, block, self.columns, coefficients, dictionaries)

    def _spikes(self, n: int) -> FloatArray:
        axis = self.axes[n]
        assert isinstance(axis, BinnedAxis)
        return axis.spikes

    def _spike_weights(self, factors: BlockFactors, c: int) -> FloatArray:
        """Return the probability of each spike of a column of the block; shape (S, F).

        The Gaussian too gives an integer that is a spike some probability; the spike has the rest.
        """
        found = factors.spikes[c][1:]
        spikes = self._spikes(self.columns[c])
        if not self.whole[c] or not len(spikes):
            return found
        variance = factors.covariances[:, c, c]
        away = self.warps[c](spikes)[:, None] - factors.means[:, c]
        logs = self.warps[c].log_slope(spikes)[:, None] - 0.5 * (away**2 / variance + np.log(2 * np.pi * variance))
        own = np.exp(logs)
        of_all = np.minimum(own.sum(axis=0), 0.999)
        some = np.clip((found.sum(axis=0) - of_all) / (1 - of_all), 0.0, 1.0)
        return np.asarray(np.maximum(found - (1 - some) * own, 0.0))


def _atoms(rows: Rows, dictionaries: tuple[Dictionary, ...], axes: Sequence[Axis]) -> StackedAtoms:
    """Return the bin masses of dictionaries on the axes of their columns."""

    def find() -> tuple[tuple[Dictionary, ...], StackedAtoms]:
        return dictionaries, StackedAtoms(all_masses(dictionaries, axes))

    return found_once(rows, ("atoms", *map(id, dictionaries)), find)[1]  # the dictionaries are kept too, as their ids


def _root_mean_square(column: Counted, logs: FloatArray) -> float:
    """Return the root mean square over the rows of numbers whose logarithms are given."""
    top = float(logs.max())
    return float(np.sqrt(column.mean_of(np.exp(2 * (logs - top)))) * np.exp(top))


def _chosen(
    rows: Rows, coarse: Sequence[Axis], columns: Sequence[int], rng: np.random.Generator
) -> dict[int, Dictionary]:
    """Return the dictionaries that suit some columns best."""
    schema = Schema(tuple(rows.schema.variables[n] for n in columns), rows.schema.container)
    merged = tuple(merged_counts(rows, n, coarse[n]) for n in columns)
    counts = Counts(schema, tuple(coarse[n] for n in columns), merged)
    return dict(zip(columns, choose_dictionaries(counts, {}, rng, slack=0.0), strict=True))


def _warps(
    name: str, rows: Rows, coarse: Sequence[Axis], columns: Sequence[int], chosen: Mapping[int, Dictionary]
) -> list[Warp]:
    """Return the warps of the columns of a block."""
    each = [of_block(rows, n) for n in columns]
    whole = [rows.schema.variables[n].kind is Kind.INTEGER for n in columns]
    # the lattice of narrow integers is to be the same everywhere
    bent = np.array([not (integer and column.is_narrow()) for integer, column in zip(whole, each, strict=True)], bool)
    warps = [
        _warp(name, column, rows, n, coarse[n], chosen.get(n)) if bend else straight(column)
        for n, column, bend in zip(columns, each, bent.tolist(), strict=True)
    ]
    if name == "joint":
        warps = joint_warps(rows, columns, warps, bent)
    return [
        bounded(warp, column, _support(rows.schema.variables[n])) if bend else warp
        for n, column, warp, bend in zip(columns, each, warps, bent.tolist(), strict=True)
    ]


def _support(variable: Variable) -> tuple[float, float]:
    """Return the bounds of the numbers that stand for a variable: half a unit beyond those of integers."""
    low, high = variable.support
    return (low - 0.5, high + 0.5) if variable.kind is Kind.INTEGER else (low, high)


def _warp(name: str, column: Counted, rows: Rows, n: int, axis: Axis, dictionary: Dictionary | None) -> Warp:
    """Return the warp of one column, without regard to bounds; of joint warps, where they begin."""
    if name == "power":
        return power(column)
    if name in ("log", "joint"):
        return found_once(rows, ("log", n), lambda: log(column))
    if name == "scores":
        assert dictionary is not None  # chosen for scores
        counts = merged_counts(rows, n, axis)
        prior = margin_prior(dictionary, float(counts.sum()))
        weights = simplex_weights(dictionary.masses(axis), counts, prior=prior)
        return scores(column, dictionary, weights, whole=rows.schema.variables[n].kind is Kind.INTEGER)
    return straight(column)
