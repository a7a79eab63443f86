r"""Learned atoms: locations and scales re-estimated from posterior counts, without another pass over the rows.

With A_n = Dbar_n B_n and S_n the posterior counts of EM, the number of rows in bin i that belong to atom l is

.. math:: w_l[i] = \bar D_n[i, l] \sum_r B_n[l, r] S_n[i, r] / A_n[i, r].

Each atom's location and scale are moved by Fisher scoring on the bins to increase
:math:`\sum_i w_l[i] \log \bar D_n[i, l]`. A prior holds each atom near its start, as if it had `HOLD_ROWS` more rows
drawn from the atom as it was then, so that it does not follow noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jointwise._typing import FloatArray
from jointwise.axes import Axis, BinnedAxis
from jointwise.dictionary import Dictionary
from jointwise.engines.atoms import Masses, Places
from jointwise.engines.base import PosteriorCounts
from jointwise.families.location_scale import LocationScale
from jointwise.fitting.problem import all_masses
from jointwise.solvers import Factors, RowsEM, RowsProblem, solve
from jointwise.solvers.accelerated import LEAST_MASS
from jointwise.solvers.factors import stacked_slices

# Rows of the prior that holds an atom in its place.
HOLD_ROWS = 20.0
# EM steps between two moves of the atoms, and the most moves: with more, atoms follow the noise of the rows.
STEPS_PER_MOVE, MOST_MOVES = 2, 6
# Longest move: in scales for the location, and for the logarithm of the scale. Fisher scoring is local.
LONGEST_MOVE = 0.5
# Added to the information matrix, which is singular for an atom without rows.
RIDGE = 1e-9


@dataclass(frozen=True, eq=False)
class Learned:
    """Dictionaries, and factors fitted to the rows with them.

    Parameters
    ----------
    dictionaries : tuple of Dictionary
    problem : RowsProblem
        The rows, with the masses of these dictionaries.
    factors : Factors
    history : tuple of float
        The negative log-posterior per row before the first move of the atoms and after each; it never rises.
    """

    dictionaries: tuple[Dictionary, ...]
    problem: RowsProblem
    factors: Factors
    history: tuple[float, ...] = ()


def learn_atoms(
    start: Learned,
    axes: Sequence[Axis],
    *,
    tol: float,
    held: Sequence[Masses] | None = None,
    on_round: Callable[[Learned], None] | None = None,
) -> Learned:
    """Move atoms and refit factors in turn until a round gains no more than ``tol`` nats per row.

    Only families with a location and a scale are moved; the others stay as they are.

    Parameters
    ----------
    start : Learned
        Atoms and the factors fitted to them, or the last state that `on_round` received, to go on from there.
    axes : sequence of Axis
        The bins of the problem's rows.
    tol : float
    held : sequence of Places or arrays of shape (n_bins, n_atoms), optional
        Masses of the atoms where the prior holds them; by default those of `start`.
    on_round : callable, optional
        Called with the state after every round.
    """
    held = start.problem.masses if held is None else held
    learned = start
    while not _is_settled(learned.history, tol):
        learned = _round(learned, axes, held, tol)
        if on_round is not None:
            on_round(learned)
    return learned


def _is_settled(history: Sequence[float], tol: float) -> bool:
    return len(history) > MOST_MOVES or (len(history) > 1 and history[-2] - history[-1] <= tol)


def _round(learned: Learned, axes: Sequence[Axis], held: Sequence[Masses], tol: float) -> Learned:
    """Refit the factors, then move the atoms unless the search is settled."""
    problem = learned.problem
    factors = solve(RowsEM(learned.factors, tol=0.0), problem, max_steps=STEPS_PER_MOVE).value
    point = factors.point
    tables, found = problem.posterior(point)
    history = (*learned.history, _objective(problem, point, found, held))
    if _is_settled(history, tol):
        return replace(learned, factors=factors, history=history)
    quotient = found.counts / (tables * problem.bin_margins[:, None])
    atoms = tuple(
        d if isinstance(masses, Places) else moved(d, axis, masses * (quotient[bins] @ b.T) + HOLD_ROWS * place)
        for d, axis, masses, bins, b, place in zip(
            learned.dictionaries, axes, problem.masses, problem.bin_slices, factors.coefficients, held, strict=True
        )
    )
    return Learned(atoms, with_atoms(problem, atoms, axes), factors, history)


def with_atoms(problem: RowsProblem, atoms: Sequence[Dictionary], axes: Sequence[Axis]) -> RowsProblem:
    """Return the problem with the masses of other atoms."""
    return replace(problem, masses=all_masses(atoms, axes))


def moved(dictionary: Dictionary, axis: Axis, shares: FloatArray) -> Dictionary:
    """Return the dictionary with each location and scale moved to increase sum_i shares[i, l] log masses[i, l].

    Parameters
    ----------
    dictionary : Dictionary
    axis : Axis
    shares : array of shape (n_bins, n_atoms)
        Number of rows in each bin that belong to each atom.

    Examples
    --------
    >>> from jointwise.axes import BinnedAxis
    >>> axis = BinnedAxis(np.linspace(-3, 3, 61))
    >>> target = Dictionary.grid("gaussian", 0.4, 0.4, n=1, scale=1.2).masses(axis)
    >>> atom = Dictionary.grid("gaussian", 0, 0, n=1, scale=1.0)
    >>> for _ in range(5):
    ...     atom = moved(atom, axis, 100 * target)
    >>> atom.families[0].loc.round(3), atom.families[0].scale.round(3)
    (array([0.4]), array([1.2]))
    """
    columns = stacked_slices([f.n_atoms for f in dictionary.families])
    return Dictionary(
        tuple(
            _moved_family(f, axis, shares[:, own])
            if isinstance(f, LocationScale) and isinstance(axis, BinnedAxis)
            else f
            for f, own in zip(dictionary.families, columns, strict=True)
        )
    )


def _moved_family(family: LocationScale, axis: BinnedAxis, shares: FloatArray) -> LocationScale:
    """Take one Fisher scoring step for every atom; halve it if it leads downhill, skip it if halving does not help."""
    masses = _masses(family, axis)
    step_loc, step_log_scale = _scoring_step(slopes(family, axis), masses, shares)
    best, reached = family, _log_likelihood(masses, shares)
    for _ in range(4):
        trial = _shifted(family, step_loc, step_log_scale)
        better = _log_likelihood(_masses(trial, axis), shares) >= reached
        if better.all():
            return trial
        step_loc, step_log_scale = (np.where(better, s, s / 2) for s in (step_loc, step_log_scale))
        best = _shifted(family, np.where(better, step_loc, 0.0), np.where(better, step_log_scale, 0.0))
    return best


def slopes(family: LocationScale, axis: BinnedAxis) -> FloatArray:
    r"""Return the derivatives of the bin masses by location (in scales) and by log-scale; shape (2, n_bins, n_atoms).

    With the density f of the standard form and z the edges in its units, they are the differences between the ends of a
    bin of :math:`-f(z)` and of :math:`-z f(z)`; at infinite ends both are zero.
    """
    edges = axis.edges[:, None]
    found = np.zeros((2, axis.n_bins, family.n_atoms))
    with np.errstate(all="ignore"):  # far from an atom its density is zero
        density = np.exp(family.logpdf(axis.edges)) * family.scale
        at_edges = np.stack([density, np.where(density > 0, (edges - family.loc) / family.scale * density, 0.0)])
    found[:, 1 : axis.n_intervals] = at_edges
    found[:, : axis.n_intervals - 1] -= at_edges
    return found


def _scoring_step(slope: FloatArray, masses: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the inverse Fisher information times the gradient: steps of location (in scales) and log-scale."""
    masses = np.maximum(masses, LEAST_MASS)
    relative = slope / masses
    gradient = np.einsum("il,ail->la", shares, relative)
    information = np.einsum("ail,bil->lab", slope, relative) * shares.sum(axis=0)[:, None, None]
    step = np.linalg.solve(information + RIDGE * np.eye(2), gradient[:, :, None])[:, :, 0]
    loc, log_scale = step.clip(-LONGEST_MOVE, LONGEST_MOVE).T
    return loc, log_scale


def _shifted(family: LocationScale, loc: FloatArray, log_scale: FloatArray) -> LocationScale:
    return family.at(family.loc + loc * family.scale, family.scale * np.exp(log_scale))


def _masses(family: LocationScale, axis: Axis) -> FloatArray:
    return Dictionary((family,)).masses(axis)


def _log_likelihood(masses: FloatArray, shares: FloatArray) -> FloatArray:
    """The quantity each atom maximises: the log-likelihood of its rows; shape (n_atoms,)."""
    return np.asarray((shares * np.log(np.maximum(masses, LEAST_MASS))).sum(axis=0))


def _objective(problem: RowsProblem, point: FloatArray, found: PosteriorCounts, held: Sequence[Masses]) -> float:
    """Negative log-posterior of factors and atoms, per row."""
    log_likelihood = found.log_likelihood + found.counts.sum(axis=1) @ np.log(problem.bin_margins)
    moves = sum(
        float((start * np.log(np.maximum(start, LEAST_MASS) / np.maximum(now, LEAST_MASS))).sum())
        for start, now in zip(held, problem.masses, strict=True)
        if not isinstance(start, Places) and not isinstance(now, Places)
    )
    return float(problem.divergence(point[1:]) + HOLD_ROWS * moves - log_likelihood) / problem.n_rows
