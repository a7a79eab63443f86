r"""Maximum a posteriori of a mixture with a Gaussian block, from rows: EM on the sums of passes.

The log-posterior is the log-likelihood of the rows less

.. math:: \sum_r \Big( \nu \, D(\Sigma_r)
          + \tfrac{\kappa}{2} (\mu_r - m)^\top \Sigma_r^{-1} (\mu_r - m)
          + \beta \sum_n \mathrm{KL}(m_n \| B_n[:, r]) + \beta \sum_c \mathrm{KL}(q_c \| s_c[:, r]) \Big),

as if each component had seen `nu` more rows with a covariance like W, a trace `kappa` of a row at the mean m of all,
and `beta` more rows with each product column's and each spike's share in the whole table. Components of a table differ
in size more than in shape, so each has its own size, which is drawn to one by a share :math:`\rho = \nu / \nu_0` of
these rows:

.. math:: D(\Sigma) = \min_{s \ge s_0} \mathrm{KL}\big(N(0, s W) \| N(0, \Sigma)\big)
          + \rho \, \mathrm{KL}\big(N(0, W) \| N(0, s W)\big).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import multigammaln, xlogy

from jointwise._numerics import on_lattice
from jointwise._typing import FloatArray
from jointwise.engines import PosteriorCounts
from jointwise.engines.atoms import StackedAtoms, weighted_log
from jointwise.engines.blocks import BlockComponents, BlockEngine, BlockSums
from jointwise.exceptions import InputError
from jointwise.solvers.accelerated import LEAST_MASS
from jointwise.solvers.base import Solver
from jointwise.solvers.factors import FrozenArrays, frozen

# Two models are one if weights, means and covariances differ by less than this, in standard deviations.
SAME = 0.02
# Rows at the mean of all that each component has seen: so few that they only give a component without rows a mean.
KAPPA = 1e-3
# The nu that draws the size of a component to that of W as much as its shape; weaker priors draw the size less yet.
SAME_SIZE = 1000.0
# Smallest size, so that no covariance is singular where columns are functions of each other.
LEAST_SIZE = 0.1
# Rows for each column by which the covariance of a component is drawn to the mean of all, before they are pooled.
STEADYING = 0.3
# Rows of uncorrelated columns that the pooled covariance may have seen; see `shrunk`.
KAPPA_ENDS = (1e-6, 1e5)
KAPPAS = np.geomspace(*KAPPA_ENDS, 111)
# How much wider components are than the rows they were fitted to; see `widened`.
WIDENING = 0.5
# How many times the covariances of the tails are those of the components; see `with_tails`.
TAIL_SCALE = 3.0


@dataclass(frozen=True, eq=False)
class BlockFactors:
    """The parameters of a mixture with a Gaussian block.

    Attributes
    ----------
    weights : array of shape (F,)
        Mixing weights lam, on the simplex.
    means : array of shape (F, d)
        mu_r.
    covariances : array of shape (F, d, d)
        Sigma_r, positive definite.
    coefficients : tuple of arrays of shape (L_n, F)
        B_n of each product column, each column on the simplex.
    spikes : tuple of d arrays of shape (1 + S_c, F)
        Probability of no spike, then of each spike, of each block column.

    Examples
    --------
    >>> one = BlockFactors(np.ones(1), np.zeros((1, 2)), np.eye(2)[None], (), (np.ones((1, 1)),) * 2)
    >>> one.n_components
    1
    """

    weights: FloatArray
    means: FloatArray
    covariances: FloatArray
    coefficients: tuple[FloatArray, ...]
    spikes: tuple[FloatArray, ...]

    def __post_init__(self) -> None:
        for name in ("weights", "means", "covariances"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
        for name in ("coefficients", "spikes"):
            object.__setattr__(self, name, FrozenArrays.of(getattr(self, name)))

    @property
    def n_components(self) -> int:
        """Number of components F."""
        return self.weights.size

    @cached_property
    def stacked(self) -> FloatArray:
        """The coefficients of all product columns below each other; shape (sum L, F)."""
        return np.concatenate([np.empty((0, self.n_components)), *self.coefficients])

    @cached_property
    def precisions(self) -> FloatArray:
        """The inverses of the covariances; shape (F, d, d)."""
        return np.asarray(np.linalg.inv(self.covariances))

    def take(self, chosen: Sequence[int]) -> BlockFactors:
        """Return some of the components, their weights scaled to sum to one."""
        where = list(chosen)
        return BlockFactors(
            self.weights[where] / self.weights[where].sum(),
            self.means[where],
            self.covariances[where],
            tuple(b[:, where] for b in self.coefficients),
            tuple(s[:, where] for s in self.spikes),
        )


class Moments(NamedTuple):
    """The next means (F, d), and the scatters (F, d, d) about them with what the prior's mean adds."""

    means: FloatArray
    scatters: FloatArray


@dataclass(frozen=True, eq=False)
class BlocksProblem:
    """Rows, atoms of the product columns, and the prior.

    Parameters
    ----------
    rows : BlockEngine
        The coded rows.
    n_rows : float
        Their number, or the sum of their weights.
    atoms : StackedAtoms
        Probability of bin i under atom l, of each product column.
    margins : tuple of arrays of shape (L_n,)
        m_n: coefficients of each product column's own 1-D fit.
    spike_margins : tuple of d arrays of shape (1 + S_c,)
        q_c: share of the rows at no spike, then at each spike, of each block column.
    centre : array of shape (d,)
        m: mean of all rows.
    scale : array of shape (d, d)
        W, positive definite.
    trace : array of shape (d,)
        Variances that `pooled` adds to the scale, so that no covariance is singular.
    lattice : array of shape (d,)
        Distance of neighbouring integers of each integer column, in the block's units; zero for other columns.
    nu, beta : float
        Numbers of rows that the prior counts for, `nu` positive.
    """

    rows: BlockEngine
    n_rows: float
    atoms: StackedAtoms
    margins: tuple[FloatArray, ...]
    spike_margins: tuple[FloatArray, ...]
    centre: FloatArray
    scale: FloatArray
    trace: FloatArray
    lattice: FloatArray
    nu: float
    beta: float

    def __post_init__(self) -> None:
        if not self.nu > 0:
            raise InputError(f"nu must be positive; got {self.nu!r}.")
        if not self.beta >= 0:
            raise InputError(f"beta must be zero or more; got {self.beta!r}.")

    def update(self, factors: BlockFactors) -> tuple[float, BlockFactors]:
        """Return the negative log-posterior per row at some factors, and the factors after one EM update."""
        sums = self.sums(factors)
        return self.objective(factors, sums), self.maximised(factors, sums)

    def sums(self, factors: BlockFactors) -> BlockSums:
        """Return the sums of one pass over the rows."""
        return self.rows.sums(self.components(factors))

    def components(self, factors: BlockFactors) -> BlockComponents:
        """Return the components as passes take them."""
        tables = np.log(self.atoms.conditionals(factors.stacked))
        no_spike = np.zeros((1, factors.n_components))
        return BlockComponents(
            _log(factors.weights),
            factors.means,
            factors.covariances,
            tuple(tables[bins] for bins in self.atoms.bin_slices),
            tuple(_log(each) if len(each) > 1 else no_spike for each in factors.spikes),
        )

    def objective(self, factors: BlockFactors, sums: BlockSums) -> float:
        """Return the negative log-posterior per row, up to a constant, from the sums of a pass at the factors."""
        return -(sums.log_likelihood - self.penalty(factors)) / self.n_rows

    def penalty(self, factors: BlockFactors) -> float:
        """Return what the prior takes from the log-likelihood; see the module."""
        d, sizes = len(self.scale), self.sizes(factors)
        away = factors.means - self.centre
        covariance = d * (sizes * self._thinness(factors) - 1 - np.log(sizes))
        covariance += np.linalg.slogdet(factors.covariances)[1] - self._log_det_scale
        covariance += self.same_size * d * (1 / sizes - 1 + np.log(sizes))
        mean = np.einsum("ri,rij,rj->", away, factors.precisions, away)
        spikes = zip(self.spike_margins, factors.spikes, strict=True)
        products = sum(float(q @ (_log(q)[:, None] - _log(b)).sum(axis=1)) for q, b in spikes if len(q) > 1)
        products += factors.n_components * float(xlogy(self.margin, self.margin).sum())
        products -= weighted_log(factors.stacked, self.margin)
        return float(0.5 * self.nu * covariance.sum() + 0.5 * KAPPA * mean + self.beta * products)

    def sizes(self, factors: BlockFactors) -> FloatArray:
        r"""Return how many times W the covariance is that the prior holds likeliest for each component; shape (F,).

        It is the s of D in the module: `LEAST_SIZE`, or if that is larger the positive root of

        .. math:: u s^2 - (1 - \rho) s - \rho = 0, \qquad u = \operatorname{tr}(\Sigma_r^{-1} W) / d.

        One component has the size of W.
        """
        if factors.n_components == 1 or not len(self.scale):
            return np.ones(factors.n_components)
        u, left = self._thinness(factors), 1 - self.same_size
        found: FloatArray = (left + np.sqrt(left**2 + 4 * self.same_size * u)) / (2 * u)
        return np.maximum(found, LEAST_SIZE)

    def _thinness(self, factors: BlockFactors) -> FloatArray:
        """Return the mean variance of W in each component's units, u of `sizes`; shape (F,)."""
        traces = np.einsum(
            "ri,i->r", factors.precisions.reshape(factors.n_components, self.scale.size), self.scale.ravel()
        )
        return np.asarray(traces / max(len(self.scale), 1))

    @property
    def same_size(self) -> float:
        """The share rho of the prior's rows that draws sizes to one."""
        return self.nu / SAME_SIZE

    @cached_property
    def _log_det_scale(self) -> float:
        """The logarithm of the determinant of W."""
        return float(np.linalg.slogdet(self.scale)[1])

    def maximised(self, factors: BlockFactors, sums: BlockSums, moments: Moments | None = None) -> BlockFactors:
        """Return the factors that maximise the expected log-posterior, from the sums of a pass at ``factors``.

        Their `moments` need not be known. The covariances are the likeliest for the sizes at ``factors``.
        """
        means, scatters = moments or self.moments(factors, sums)
        prior = self.nu * self.sizes(factors)[:, None, None] * self.scale
        covariances = (scatters + prior) / (sums.totals + self.nu)[:, None, None]
        return BlockFactors(
            sums.totals / sums.totals.sum(),
            means,
            on_lattice(covariances, self.lattice),
            self._coefficients(factors, sums),
            self._spikes(factors, sums),
        )

    def _spikes(self, factors: BlockFactors, sums: BlockSums) -> tuple[FloatArray, ...]:
        """Return the next probabilities of the spikes; most columns have none, and their tables one line of ones."""
        if not any(len(q) > 1 for q in self.spike_margins):
            return factors.spikes
        return tuple(
            _normalised(counts + self.beta * q[:, None], q) if len(q) > 1 else one
            for q, counts, one in zip(self.spike_margins, sums.spikes, factors.spikes, strict=True)
        )

    def _coefficients(self, factors: BlockFactors, sums: BlockSums) -> tuple[FloatArray, ...]:
        """Return the next coefficients of the product columns; all of them are found in one call.

        One component keeps what it began with, the columns' own fits: these are smoothed, and EM would undo it.
        """
        if not self.margins or factors.n_components == 1:
            return factors.coefficients
        point = np.vstack([factors.weights, factors.stacked])
        counts = PosteriorCounts(np.concatenate(sums.counts), sums.totals, sums.log_likelihood)
        tables, prior = self.atoms.conditionals(factors.stacked), self.beta * self.margin
        found = frozen(self.atoms.update(point, counts, tables, np.ones(self.atoms.n_bins), prior))[1:]
        return FrozenArrays.cut(found, self.atoms.slices)

    @cached_property
    def margin(self) -> FloatArray:
        """The margins of all product columns, one after the other; shape (sum L,)."""
        return np.concatenate([np.empty(0), *self.margins])

    def settled(self, factors: BlockFactors, sums: BlockSums) -> tuple[BlocksProblem, BlockFactors]:
        """Return the problem of `pooled`, and its factors of `maximised`; both have the same moments."""
        moments = self.moments(factors, sums)
        problem = self.pooled(factors, sums, moments)
        return problem, problem.maximised(factors, sums, moments)

    def pooled(self, factors: BlockFactors, sums: BlockSums, moments: Moments | None = None) -> BlocksProblem:
        r"""Return the problem whose scale W is pooled from the covariances within components of a pass.

        It is their harmonic mean, weighted by rows, and a trace:

        .. math:: W^{-1} = \sum_r \frac{n_r}{n} \Big(\frac{S_r + c M}{n_r + c}\Big)^{-1}, \qquad M = \sum_r S_r / n.

        Up to the weights, that is the W that the log-posterior prefers. Components along a curve are thin in different
        directions, in which M is not: a prior centred at M would blow them up. The c rows of M keep components with
        few rows, which are thin by chance, from shrinking W. Correlations are then drawn to zero; see `shrunk`.
        """
        _, scatters = moments or self.moments(factors, sums)
        total = max(float(sums.totals.sum()), 1e-300)
        mean = _raised(scatters.sum(axis=0) / total, self.trace)
        if len(scatters) == 1:
            return replace(self, scale=shrunk(mean, self.n_rows))
        rows = STEADYING * len(mean)
        each = (scatters + rows * mean) / (sums.totals + rows)[:, None, None]
        inverse = np.einsum("r,rij->ij", sums.totals / total, np.linalg.inv(each))
        scale = np.linalg.inv((inverse + inverse.T) / 2)
        return replace(self, scale=_raised(shrunk((scale + scale.T) / 2, self.n_rows), self.trace))

    def moments(self, factors: BlockFactors, sums: BlockSums) -> Moments:
        """Return what the sums of a pass at ``factors`` say of the Gaussians, whatever their scale is."""
        n, first = sums.totals[:, None], sums.firsts
        shift = (first + KAPPA * (self.centre - factors.means)) / (n + KAPPA)
        means = factors.means + shift
        cross = _outer(first, shift)
        scatters = sums.seconds - cross - np.swapaxes(cross, 1, 2) + n[:, :, None] * _outer(shift, shift)
        away = means - self.centre
        scatters += KAPPA * _outer(away, away)
        return Moments(means, (scatters + np.swapaxes(scatters, 1, 2)) / 2)


class BlocksState(NamedTuple):
    """Factors, and the result of one EM update from them."""

    factors: BlockFactors
    objective: float
    update: BlockFactors
    decreases: tuple[float, float]  # by the last step and the one before


@dataclass(frozen=True, eq=False)
class BlocksEM(Solver[BlocksProblem, BlocksState, BlockFactors]):
    r"""EM on rows from given factors.

    With S_r the scatter of component r about its mean, a step is

    .. math:: \lambda_r \leftarrow n_r / n, \qquad \mu_r \leftarrow \frac{n_r \bar w_r + \kappa m}{n_r + \kappa}, \qquad
              \Sigma_r \leftarrow \frac{S_r + \kappa (\mu_r - m)(\mu_r - m)^\top + \nu s_r W}{n_r + \nu},

    with s_r the size of the component before the step (`BlocksProblem.sizes`), B_n and spikes as in `RowsEM`, and the
    covariances of integers raised by `on_lattice`. The objective never rises.

    Parameters
    ----------
    start : BlockFactors
    tol : float
        Stop when two steps in a row each lower the objective (in nats per row) by no more than this.
    """

    start: BlockFactors
    tol: float = 1e-5

    def init(self, problem: BlocksProblem) -> BlocksState:
        """Return the start with its objective."""
        return BlocksState(self.start, *problem.update(self.start), (np.inf, np.inf))

    def step(self, problem: BlocksProblem, state: BlocksState) -> BlocksState:
        """Return the state after one EM update."""
        objective, update = problem.update(state.update)
        return BlocksState(state.update, objective, update, (state.objective - objective, state.decreases[0]))

    def objective(self, state: BlocksState) -> float:
        """Return the negative log-posterior per row, in nats."""
        return state.objective

    def is_done(self, state: BlocksState) -> bool:
        """Return whether each of the last two steps lowered the objective by no more than `tol`."""
        return max(state.decreases) <= self.tol

    def value(self, state: BlocksState) -> BlockFactors:
        """Return the factors."""
        return state.factors


def settled_scale(
    problem: BlocksProblem, start: BlockFactors, n_steps: int, tol: float = 0.0
) -> tuple[BlocksProblem, BlockFactors]:
    """Return the problem with its scale W settled, and the factors by then.

    The pooled covariance within components is a better scale than any guess, but it changes with them, and no
    objective would fall while it does. So a few updates take W along, and from there on it stays. They end early where
    one gains no more than `tol` nats per row.
    """
    factors, before = start, -np.inf
    for _ in range(n_steps):
        sums = problem.sums(factors)
        problem, factors = problem.settled(factors, sums)
        if sums.log_likelihood - before <= tol * problem.n_rows:
            break
        before = sums.log_likelihood
    return problem, factors


def shrunk(covariance: FloatArray, n_rows: float) -> FloatArray:
    r"""Return a covariance of rows with its correlations drawn to zero, as far as their evidence says.

    Many columns and few rows show correlations by chance. With an inverse Wishart prior of :math:`\kappa` rows of
    uncorrelated columns, the d x d matrix R of correlations of n rows becomes
    :math:`(n R + \kappa I) / (n + \kappa)`. The logarithm of the evidence is, with :math:`a = \kappa + d + 1`
    and up to a constant,

    .. math:: \log \Gamma_d\big(\tfrac{a + n}{2}\big) - \log \Gamma_d\big(\tfrac{a}{2}\big) + \tfrac{a}{2} d \log \kappa
              - \tfrac{a + n}{2} \log |\kappa I + n R| ,

    and :math:`\kappa` is where it is highest: next to nothing where columns are close to functions of each other, many
    rows where columns are more than rows.

    Parameters
    ----------
    covariance : array of shape (d, d)
    n_rows : float

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(30, 20))
    >>> few, many = (np.linalg.eigvalsh(shrunk(np.cov(X.T), n)) for n in (30.0, 1e9))
    >>> bool(few[0] > 0.3), bool(many[0] < 0.1)
    (True, True)
    """
    share = evidence_share(covariance, n_rows)
    return _raised(share * covariance, (1 - share) * np.diagonal(covariance))


def evidence_share(covariance: FloatArray, n_rows: float) -> float:
    r"""Return the share :math:`n / (n + \kappa)` of correlations that `shrunk` leaves.

    >>> evidence_share(np.eye(3), 100.0) < 0.01 < 0.99 < evidence_share(np.eye(3) + 100.0, 100.0)
    True
    """
    d = len(covariance)
    if d < 2:
        return 1.0
    deviations = np.sqrt(np.diagonal(covariance))
    correlations = covariance / (deviations[:, None] * deviations)
    spread = np.log(KAPPAS[:, None] + n_rows * np.maximum(np.linalg.eigvalsh(correlations), 0.0)).sum(axis=1)
    evidence = _log_evidence(n_rows, d) - (KAPPAS + d + 1 + n_rows) * spread / 2
    return float(n_rows / (n_rows + KAPPAS[int(np.argmax(evidence))]))


@lru_cache(maxsize=16)
def _log_evidence(n_rows: float, d: int) -> FloatArray:
    """Return the part of the evidence of each of `KAPPAS` that does not depend on correlations; see `shrunk`."""
    shape = KAPPAS + d + 1
    gammas = multigammaln((shape + n_rows) / 2, d) - multigammaln(shape / 2, d)
    return np.asarray(gammas + shape * d * np.log(KAPPAS) / 2)


def widened(factors: BlockFactors, n_rows: float, nu: float) -> BlockFactors:
    r"""Return components as wide as rows are that they have not seen.

    A covariance fitted to few rows is too narrow for others: its mean and its directions follow chance.

    .. math:: \Sigma_r \leftarrow \Big(1 + \omega \frac{d \, n_r}{(n_r + \nu)^2}\Big) \Sigma_r .

    Here d is the number of columns and :math:`\omega` is `WIDENING`. The prior's rows count as known. For one Gaussian
    and no prior, the predictive covariance has :math:`\omega = 1` to the first order in d / n. The average of several
    models is wider than each of them, so it needs less.

    Parameters
    ----------
    factors : BlockFactors
    n_rows : float
        Number of rows they were fitted to.
    nu : float
        Strength of the prior, in rows.

    Examples
    --------
    >>> one = BlockFactors(np.ones(1), np.zeros((1, 2)), np.eye(2)[None], (), (np.ones((1, 1)),) * 2)
    >>> widened(one, 10.0, 0.0).covariances[0, 0, 0].round(3), widened(one, 10.0, 90.0).covariances[0, 0, 0].round(3)
    (np.float64(1.1), np.float64(1.001))
    """
    n = factors.weights * n_rows
    factor = 1 + WIDENING * factors.means.shape[1] * n / np.maximum(n + nu, 1.0) ** 2
    return replace(factors, covariances=factors.covariances * factor[:, None, None])


def averaged(models: Sequence[BlockFactors]) -> BlockFactors:
    """Return the mean of the densities of several models: all their components; of models that agree, those of one."""
    which = [next(j for j, other in enumerate(models) if _agree(model, other)) for model in models]
    shares = np.bincount(which) / len(models)
    return _mixed([models[int(j)] for j in np.flatnonzero(shares)], shares[shares > 0])


def with_tails(models: Sequence[BlockFactors], share: float) -> BlockFactors:
    r"""Return the average of several models with heavier tails: a share of it is the first model, but wider.

    .. math:: (1 - \varepsilon) \, \frac1M \sum_m f_m + \varepsilon f_1^{s}, \qquad
              f_1^{s} = \sum_r \lambda_r N(\mu_r, s \Sigma_r) \cdots

    Here :math:`\varepsilon` is the share and s is `TAIL_SCALE`. Rows of real tables lie further from the others, and
    closer to them, than a Gaussian with their covariance allows. Wide components are smooth, so those of one model do.

    Parameters
    ----------
    models : sequence of BlockFactors
    share : float
        From zero, for plain Gaussians, to less than one.

    Examples
    --------
    >>> one = BlockFactors(np.ones(1), np.zeros((1, 2)), np.eye(2)[None], (), (np.ones((1, 1)),) * 2)
    >>> tailed = with_tails([one, one], 0.1)
    >>> tailed.weights.tolist(), tailed.covariances[:, 0, 0].tolist()
    ([0.9, 0.1], [1.0, 3.0])
    """
    if not share:
        return averaged(models)
    wide = replace(models[0], covariances=TAIL_SCALE * models[0].covariances)
    return _mixed([averaged(models), wide], [1 - share, share])


def tailed_logs(plain: FloatArray, wide: FloatArray, share: float) -> FloatArray:
    """Return the log-densities that rows have by `with_tails`, from those without tails and those of the tails alone.

    >>> tailed_logs(np.log([0.5]), np.log([0.1]), 0.25).round(3), np.log(0.75 * 0.5 + 0.25 * 0.1).round(3)
    (array([-0.916]), np.float64(-0.916))
    """
    return np.logaddexp(np.log1p(-share) + plain, np.log(share) + wide) if share else plain


def _mixed(models: Sequence[BlockFactors], shares: Sequence[float] | FloatArray) -> BlockFactors:
    """Return the components of several models, their weights scaled by shares."""
    return BlockFactors(
        np.concatenate([share * m.weights for share, m in zip(shares, models, strict=True)]),
        np.concatenate([m.means for m in models]),
        np.concatenate([m.covariances for m in models]),
        tuple(np.hstack(b) for b in zip(*(m.coefficients for m in models), strict=True)),
        tuple(np.hstack(s) for s in zip(*(m.spikes for m in models), strict=True)),
    )


def _agree(a: BlockFactors, b: BlockFactors) -> bool:
    """Whether two models are the same up to how far EM went, with components in the same order."""
    if a is b:
        return True
    if a.means.shape != b.means.shape or not np.allclose(a.weights, b.weights, rtol=0, atol=SAME):
        return False
    scale = np.sqrt(np.diagonal(b.covariances, axis1=1, axis2=2))
    return (
        bool((np.abs(a.means - b.means) <= SAME * scale).all())
        and bool((np.abs(a.covariances - b.covariances) <= SAME * _outer(scale, scale)).all())
        and all(np.allclose(x, y, rtol=0, atol=SAME) for x, y in zip(a.coefficients, b.coefficients, strict=True))
        and all(np.allclose(x, y, rtol=0, atol=SAME) for x, y in zip(a.spikes, b.spikes, strict=True))
    )


def _normalised(table: FloatArray, margin: FloatArray) -> FloatArray:
    """Scale the columns of a table to sum to one; those without mass become the margin."""
    sums = table.sum(axis=0)
    return np.asarray(np.where(sums > 0, table / np.where(sums > 0, sums, 1.0), margin[:, None]))


def _raised(matrix: FloatArray, by: FloatArray) -> FloatArray:
    """Return a matrix (d, d) with numbers (d,) added to its diagonal."""
    out = matrix.copy()
    out.flat[:: len(out) + 1] += by
    return out


def _outer(a: FloatArray, b: FloatArray) -> FloatArray:
    """Outer products of rows; shape (F, d, d)."""
    return np.asarray(a[:, :, None] * b[:, None, :])


def _log(values: FloatArray) -> FloatArray:
    return np.asarray(np.log(np.maximum(values, LEAST_MASS)))
