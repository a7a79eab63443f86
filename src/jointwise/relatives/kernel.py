"""Kernel density estimate of scikit-learn."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KernelDensity
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from jointwise._checks import check_integer, check_real
from jointwise._typing import FloatArray
from jointwise.exceptions import InputError
from jointwise.marginals import Profile
from jointwise.relatives._base import NUMBERS, NUMBERS_ADVICE, Relative, Seed
from jointwise.tables import decode
from jointwise.tables.variables import Schema

# Bandwidths tried, as multiples of Scott's rule n^(-1 / (N + 4)). That rule suits one Gaussian; densities with more
# detail need less.
MULTIPLES = np.geomspace(0.2, 1.6, 8)


class KernelDensityEstimate(Relative):
    r"""Gaussian kernels on standardised columns, the bandwidth by cross-validation.

    .. math:: f(x) = \frac{1}{n \prod_n \sigma_n} \sum_i \prod_n \frac1h \varphi\Bigl(
              \frac{x_n - x_{i,n}}{h \sigma_n}\Bigr)

    with :math:`\sigma_n` the standard deviation of column n, so that one bandwidth h suits columns of any unit. A thin
    wrapper of :class:`sklearn.neighbors.KernelDensity`. Integers are taken as real numbers, with a density between
    them; missing values are refused.

    Parameters
    ----------
    bandwidth : float or "cv"
        h, in standard deviations. "cv" tries eight multiples of Scott's rule (0.2 to 1.6) and takes the one with the
        largest likelihood of held-out rows.
    n_folds : int
        Folds of the cross-validation.
    random_state : int, RandomState or None
        Splits rows into folds.

    Attributes
    ----------
    bandwidth_ : float
        The bandwidth used.
    kernel_density_ : sklearn.neighbors.KernelDensity
        Of the standardised columns.
    mean_, scale_ : arrays of shape (N,)
        Mean and standard deviation used to standardise columns.

    Examples
    --------
    >>> import numpy as np
    >>> from jointwise.relatives import KernelDensityEstimate
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> model = KernelDensityEstimate(random_state=0).fit(X)
    >>> model.score_samples([[0.0, 0.0]]).round(1)
    array([-2.])
    """

    _kinds_taken = NUMBERS
    _kind_advice = NUMBERS_ADVICE
    _takes_gaps = False

    def __init__(self, bandwidth: float | Literal["cv"] = "cv", *, n_folds: int = 5, random_state: Seed = None) -> None:
        self.bandwidth = bandwidth
        self.n_folds = n_folds
        self.random_state = random_state

    def _check_parameters(self) -> None:
        if self.bandwidth != "cv" and not check_real("bandwidth", self.bandwidth) > 0:
            raise InputError(f'`bandwidth` must be "cv" or a positive number; got {self.bandwidth!r}.')
        check_integer("n_folds", self.n_folds, 2)

    def _fit(self, rows: FloatArray, schema: Schema, profile: Profile) -> None:  # noqa: ARG002  # has no axes
        self.mean_ = rows.mean(axis=0)
        spread = rows.std(axis=0)
        self.scale_ = np.where(spread > 0, spread, 1.0)
        standard = (rows - self.mean_) / self.scale_
        self.bandwidth_ = self._best_bandwidth(standard) if self.bandwidth == "cv" else float(self.bandwidth)
        self.kernel_density_ = KernelDensity(bandwidth=self.bandwidth_).fit(standard)

    def _best_bandwidth(self, standard: FloatArray) -> float:
        n, n_columns = standard.shape
        if n < self.n_folds:
            raise InputError(
                f"Found n_samples={n}, too few for n_folds={self.n_folds}. Lower n_folds or give a bandwidth."
            )
        grid = {"bandwidth": MULTIPLES * n ** (-1 / (n_columns + 4))}
        folds = KFold(self.n_folds, shuffle=True, random_state=check_random_state(self.random_state))
        search = GridSearchCV(KernelDensity(), grid, cv=folds, refit=False).fit(standard)
        return float(search.best_params_["bandwidth"])

    def _logpdf(self, rows: FloatArray) -> FloatArray:
        standard = (rows - self.mean_) / self.scale_
        return np.asarray(self.kernel_density_.score_samples(standard) - np.log(self.scale_).sum())

    def sample(self, n_samples: int = 1, random_state: Seed = None) -> Any:
        """Draw rows from the fitted density, in the frame type that was fitted; integers are rounded."""
        check_is_fitted(self, "schema_")
        drawn = self.kernel_density_.sample(n_samples, random_state=check_random_state(random_state))
        return decode(drawn * self.scale_ + self.mean_, self.schema_)
