"""Densities as truncated Fourier series, from the characteristic functions of triples."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from jointwise._checks import check_integer, listed
from jointwise._typing import FloatArray
from jointwise.estimators._tables import generator
from jointwise.exceptions import InputError
from jointwise.marginals import Profile
from jointwise.relatives._base import NUMBERS, NUMBERS_ADVICE, Relative, Seed
from jointwise.relatives._runs import best_run, check_not_negative, check_run, record
from jointwise.relatives._triples import check_triples, spread_triples
from jointwise.relatives.solvers import (
    CharacteristicALS,
    CharacteristicProblem,
    empirical_characteristic,
    frequencies,
    random_characteristic,
)
from jointwise.tables import decode
from jointwise.tables.variables import Schema

# Cells of the midpoint rule on [0, 1]. Despite the kinks of an absolute value the error is below 1e-5 for K = 20.
N_CELLS = 2048


class CharacteristicDensity(Relative):
    r"""Low-rank characteristic tensor: a mixture of products of truncated Fourier series [1]_.

    Columns are scaled to [0, 1]. The characteristic functions of triples of columns, on frequencies 2 pi k with
    :math:`|k| \le K`, are fitted by

    .. math:: Z_{jkl}[a, b, c] \approx \sum_r \lambda_r \, \Phi_j[a, r] \, \Phi_k[b, r] \, \Phi_l[c, r],

    by least squares over all triples. Fourier inversion turns the factors into densities:

    .. math:: f(x) = \sum_r \lambda_r \prod_n \Bigl| \mathrm{Re} \sum_{k=-K}^{K} \Phi_n[k, r] e^{-2 \pi i k x_n} \Bigr|
              / m_{n,r}.

    A truncated series is negative in places, and the published remedy is the absolute value. It raises the mass of a
    conditional, :math:`m_{n,r} = \int_0^1 |\cdot|`, above one. The published method does not divide by it, so its
    density has a total mass above one. ``normalize=True``, the default, divides.

    As published: scaling by the smallest and largest value, least squares of least norm for the factors with
    :math:`\Phi_n[0, r] = 1`, weights on the simplex by ADMM, the start. The code published with the paper never runs
    the weight update (it runs only if a factorisation fails), so its weights stay equal. Here it runs, with a penalty
    that follows the problem's scale.

    Ours: a symmetric start, :math:`\Phi_n[-k, r]` the conjugate of :math:`\Phi_n[k, r]`, which least squares keep
    symmetric; several starts; a range from the training rows alone, widened by ``padding`` (the published experiments
    also use the test rows); zero density outside the range, where the published series repeats itself.

    Integers are taken as real numbers, with a density between them; categories are refused. A row with missing cells
    is left out of the triples that need them, and a missing cell of a row to score is integrated out.

    Parameters
    ----------
    n_components : int
        Number of components F. Published: 10, 20, 30 or 50 by cross-validation.
    n_frequencies : int
        K. Published: 10, 15 or 20. The default suits some thousands of rows: more frequencies fit more noise.
    normalize : bool
        Whether each conditional is divided by its mass.
    padding : float
        The range is widened at each end by this share of it. With 0, as published, about one new row in n / (2 N)
        falls outside, and a density that ends high at one end oscillates at the other.
    triples : float
        Share of all triples to use, evenly spaced in their order.
    n_init : int
        Random starts; the run with the lowest objective is kept. Published: 1.
    max_iter : int
        Most sweeps over all blocks. Published: 35.
    tol : float
        Stop when a sweep lowers the objective by no more than this share of it.
    random_state : int, RandomState or None
        Draws the starts.

    Attributes
    ----------
    weights_ : array of shape (F,)
        Mixing weights.
    factors_ : array of shape (N, 2 K + 1, F), complex
        Phi, frequencies from -K to K.
    low_, width_ : arrays of shape (N,)
        The range: column n is scaled to (x - low) / width.
    masses_ : array of shape (N, F)
        m, the mass of each conditional before division.
    objective_ : float
        Sum of squared errors over all triples.
    n_iter_, converged_
        Sweeps of the run kept, and whether it met its tolerance.

    References
    ----------
    .. [1] M. Amiridi, N. Kargas, N. D. Sidiropoulos: Low-rank characteristic tensor density estimation part I:
       foundations. IEEE Transactions on Signal Processing, 2022 (preprint 2020).

    Examples
    --------
    >>> from jointwise.datasets import gaussians
    >>> from jointwise.metrics import mean_absolute_log_ratio
    >>> from jointwise.relatives import CharacteristicDensity
    >>> law = gaussians(rng=0)
    >>> model = CharacteristicDensity(random_state=0).fit(law.sample(5000, rng=1))
    >>> mean_absolute_log_ratio(model.score_samples, law.logpdf, law.sample(1000, rng=2)) < 0.4
    True
    """

    _kinds_taken = NUMBERS
    _kind_advice = NUMBERS_ADVICE
    _least_columns = 3

    def __init__(
        self,
        n_components: int = 5,
        *,
        n_frequencies: int = 5,
        normalize: bool = True,
        padding: float = 0.1,
        triples: float = 1.0,
        n_init: int = 3,
        max_iter: int = 200,
        tol: float = 1e-3,
        random_state: Seed = None,
    ) -> None:
        self.n_components = n_components
        self.n_frequencies = n_frequencies
        self.normalize = normalize
        self.padding = padding
        self.triples = triples
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_integer("n_components", self.n_components, 1)
        check_integer("n_frequencies", self.n_frequencies, 1)
        check_not_negative("padding", self.padding)
        check_triples(self.triples)
        check_run(self.n_init, self.max_iter, self.tol)
        most = (2 * self.n_frequencies + 1) ** 2
        self._check_n_components(
            self.n_components, most, f"that many fit any triple exactly at n_frequencies={self.n_frequencies}"
        )

    def _fit(self, rows: FloatArray, schema: Schema, profile: Profile) -> None:  # noqa: ARG002  # has no axes
        self._fit_range(rows)
        problem = self._problem(self._scaled(rows), schema)
        rng = generator(self.random_state)
        size = (problem.n_variables, self.n_frequencies, self.n_components)
        starts = [random_characteristic(*size, rng) for _ in range(self.n_init)]
        best = best_run((CharacteristicALS(start, tol=self.tol) for start in starts), problem, self.max_iter)
        self.weights_, self.factors_ = best.value.weights, best.value.factors
        self.masses_ = np.stack([self._series(n, _midpoints()).mean(axis=0) for n in range(len(schema))])
        record(self, best)

    def _fit_range(self, rows: FloatArray) -> None:
        low, high = np.nanmin(rows, axis=0), np.nanmax(rows, axis=0)
        width = np.where(high > low, high - low, 1.0)
        self.low_ = low - self.padding * width
        self.width_ = width * (1 + 2 * self.padding)

    def _scaled(self, rows: FloatArray) -> FloatArray:
        return np.asarray((rows - self.low_) / self.width_)

    def _problem(self, scaled: FloatArray, schema: Schema) -> CharacteristicProblem:
        """Return the characteristic functions of all triples for which some row has all values."""
        tensors = {}
        for triple in spread_triples(len(schema), self.triples):
            part = scaled[:, triple]
            whole = part[~np.isnan(part).any(axis=1)]
            if len(whole):
                tensors[triple] = empirical_characteristic(whole, self.n_frequencies)
        unseen = sorted(set(range(len(schema))) - {n for triple in tensors for n in triple})
        if unseen:
            raise InputError(
                f"No row holds a value of {listed(schema.names[n] for n in unseen)} together with values of two other "
                "columns. Drop such columns, or add rows without gaps."
            )
        return CharacteristicProblem(len(schema), tensors)

    def _series(self, n: int, x: FloatArray) -> FloatArray:
        """Absolute value of the truncated series of column n at scaled points x, given each component; (n, F)."""
        return np.asarray(np.abs((frequencies(x, self.n_frequencies).conj() @ self.factors_[n]).real))

    def _logpdf(self, rows: FloatArray) -> FloatArray:
        scaled = self._scaled(rows)
        density = np.tile(self.weights_, (len(rows), 1))
        shift = np.zeros(len(rows))
        for n, x in enumerate(scaled.T):
            gap = np.isnan(x)
            inside = (x >= 0) & (x <= 1)
            here = np.where(inside[:, None], self._series(n, np.where(gap, 0.0, x)), 0.0)
            here[gap] = self.masses_[n]
            density *= here / self.masses_[n] if self.normalize else here
            shift -= np.where(gap, 0.0, np.log(self.width_[n]))
            top = density.max(axis=1, keepdims=True)  # rescaled to one: the product over many columns would underflow
            density /= np.where(top > 0, top, 1.0)
            with np.errstate(divide="ignore"):  # no density at all has the log-density -inf
                shift += np.log(top[:, 0])
        return np.asarray(shift + np.log(np.maximum(density.sum(axis=1), np.finfo(float).tiny)))

    def sample(self, n_samples: int = 1, random_state: Seed = None) -> Any:
        """Draw rows from the fitted density divided by its mass, in the frame type that was fitted.

        Each value comes from a cell of the grid used for the masses, and is uniform inside it.
        """
        check_is_fitted(self, "schema_")
        rng = generator(random_state)
        shares = self.weights_ if self.normalize else self.weights_ * self.masses_.prod(axis=0)
        component = rng.choice(len(shares), check_integer("n_samples", n_samples, 0), p=shares / shares.sum())
        drawn = np.empty((n_samples, len(self.schema_)))
        for n in range(drawn.shape[1]):
            below = np.cumsum(self._series(n, _midpoints()), axis=0)
            for r in np.unique(component):
                here = np.flatnonzero(component == r)
                cell = np.searchsorted(below[:, r], rng.uniform(0, below[-1, r], len(here)))
                drawn[here, n] = (cell + rng.uniform(size=len(here))) / N_CELLS
        return decode(drawn * self.width_ + self.low_, self.schema_)


def _midpoints() -> FloatArray:
    return (np.arange(N_CELLS) + 0.5) / N_CELLS
