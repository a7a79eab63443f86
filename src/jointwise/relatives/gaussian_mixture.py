"""Gaussian mixtures of scikit-learn, with a number of components that is given, chosen by BIC, or best in hindsight."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from typing import Any, Literal, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from jointwise._checks import check_choice, check_integer, warn_caller
from jointwise._typing import FloatArray
from jointwise.estimators._tables import generator
from jointwise.exceptions import CovarianceError, InputError, RankError
from jointwise.joint.density import JointDensity
from jointwise.marginals import Profile
from jointwise.metrics import mean_absolute_log_ratio
from jointwise.relatives._base import NUMBERS, NUMBERS_ADVICE, Relative, Seed
from jointwise.relatives._runs import check_not_negative, check_run
from jointwise.tables import decode, encode
from jointwise.tables.variables import Schema

# Points drawn from the truth, to measure the distance of candidates.
N_POINTS = 1000


class GaussianMixtureDensity(Relative):
    r"""Mixture of Gaussians by EM, the density estimate most people would try first.

    .. math:: f(x) = \sum_r \lambda_r \, \mathcal N(x; \mu_r, \Sigma_r)

    A thin wrapper of :class:`sklearn.mixture.GaussianMixture`. Integers are taken as real numbers, with a density
    between them; missing values are refused. A search for the number of components goes through ``candidates`` until
    a covariance fails (a component has too few rows for one) and keeps the best candidate before that.

    Parameters
    ----------
    n_components : int, "bic" or "hindsight"
        Number of components; or the candidate with the lowest Bayesian information criterion; or the candidate
        closest to the truth given to :meth:`fit`, which is known in experiments only and flatters the method.
    candidates : sequence of int
        Increasing numbers of components to choose from.
    covariance_type : "full" or "diag"
    n_init : int
        Number of starts; the best run is kept.
    max_iter : int
        Most EM steps.
    tol : float
        EM stops when a step raises the mean log-likelihood of a row by less than this.
    reg_covar : float
        Added to the diagonal of every covariance.
    random_state : int, RandomState or None
        Draws the starts, and the points for "hindsight".

    Attributes
    ----------
    mixture_ : sklearn.mixture.GaussianMixture
    n_components_ : int
        Number of components of the mixture kept.
    criteria_ : dict of int to float
        BIC, or distance D to the truth, of every candidate fitted; empty for a given number.
    converged_ : bool
        Whether the mixture kept met its tolerance.

    Examples
    --------
    >>> from jointwise.datasets import gaussians
    >>> from jointwise.relatives import GaussianMixtureDensity
    >>> law = gaussians(rng=0)
    >>> X = law.sample(500, rng=1)
    >>> GaussianMixtureDensity("bic", random_state=0).fit(X).n_components_
    1
    >>> GaussianMixtureDensity("hindsight", random_state=0).fit(X, truth=law).n_components_
    5
    """

    _kinds_taken = NUMBERS
    _kind_advice = NUMBERS_ADVICE
    _takes_gaps = False

    def __init__(
        self,
        n_components: int | Literal["bic", "hindsight"] = "bic",
        *,
        candidates: Sequence[int] = (1, 2, 5, 10, 20, 40),
        covariance_type: Literal["full", "diag"] = "full",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        random_state: Seed = None,
    ) -> None:
        self.n_components = n_components
        self.candidates = candidates
        self.covariance_type = covariance_type
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.reg_covar = reg_covar
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, truth: JointDensity | None = None) -> Self:
        """Fit the mixture.

        Parameters
        ----------
        X : frame, mapping or array of shape (n_samples, n_features)
        y : ignored
        truth : JointDensity, optional
            The law of the rows; needed for ``n_components="hindsight"``, refused otherwise.
        """
        if (truth is not None) != (self.n_components == "hindsight"):
            raise InputError(
                '`truth` is for n_components="hindsight" only, which compares candidates with it: give both or neither.'
            )
        self._truth = truth
        try:
            return super().fit(X, y)
        finally:
            del self._truth

    def _check_parameters(self) -> None:
        if isinstance(self.n_components, str):
            check_choice("n_components", self.n_components, ("bic", "hindsight"))
            numbers = [check_integer("candidates", k, 1) for k in self.candidates]
            if not numbers or numbers != sorted(set(numbers)):
                raise InputError(f"`candidates` must be increasing numbers; got {self.candidates!r}.")
        else:
            check_integer("n_components", self.n_components, 1)
        check_choice("covariance_type", self.covariance_type, ("full", "diag"))
        check_run(self.n_init, self.max_iter, self.tol)
        check_not_negative("reg_covar", self.reg_covar)

    def _fit(self, rows: FloatArray, schema: Schema, profile: Profile) -> None:  # noqa: ARG002  # has no axes
        seed = int(generator(self.random_state).integers(2**31))  # the same starts whatever the candidates
        self.criteria_: dict[int, float] = {}
        if isinstance(self.n_components, str):
            self.mixture_ = self._search(rows, schema, seed)
        else:
            self.mixture_ = self._fitted(rows, self.n_components, seed)
        self.n_components_ = int(self.mixture_.n_components)
        self.converged_ = bool(self.mixture_.converged_)
        self.n_iter_ = int(self.mixture_.n_iter_)
        if not self.converged_:
            warn_caller(
                f"EM reached the limit of {self.max_iter} steps before its tolerance: raise max_iter or tol.",
                ConvergenceWarning,
            )

    def _search(self, rows: FloatArray, schema: Schema, seed: int) -> GaussianMixture:
        """Return the best of the candidates that can be fitted."""
        criterion = self._hindsight(schema, seed) if self._truth is not None else lambda mixture: mixture.bic(rows)
        fitted = {}
        for k in self.candidates:
            try:
                fitted[k] = self._fitted(rows, k, seed)
            except (RankError, CovarianceError):
                if not fitted:
                    raise
                break  # more components would have even fewer rows each
            self.criteria_[k] = float(criterion(fitted[k]))
        return fitted[min(self.criteria_, key=self.criteria_.__getitem__)]

    def _hindsight(self, schema: Schema, seed: int) -> Any:
        truth = self._truth
        assert truth is not None  # checked by the caller
        points = truth.sample(N_POINTS, rng=seed)
        rows, logs = encode(points, schema), truth.logpdf(points)
        return lambda mixture: mean_absolute_log_ratio(mixture.score_samples, lambda _: logs, rows)

    def _fitted(self, rows: FloatArray, k: int, seed: int) -> GaussianMixture:
        self._check_n_components(k, len(rows), f"there are {len(rows)} sample(s), and each component needs one")
        mixture = GaussianMixture(
            k,
            covariance_type=self.covariance_type,
            tol=self.tol,
            reg_covar=self.reg_covar,
            max_iter=self.max_iter,
            n_init=self.n_init,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # _fit warns once, for the mixture kept
            try:
                return mixture.fit(rows)
            except ValueError as error:
                raise CovarianceError(
                    f"A covariance of the mixture of {k} Gaussians failed: {error} Lower n_components, raise "
                    'reg_covar, or use covariance_type="diag".'
                ) from error

    def _logpdf(self, rows: FloatArray) -> FloatArray:
        return np.asarray(self.mixture_.score_samples(rows))

    def sample(self, n_samples: int = 1, random_state: Seed = None) -> Any:
        """Draw rows from the fitted density, in the frame type that was fitted; integers are rounded."""
        check_is_fitted(self, "schema_")
        if n_samples == 0:  # scikit-learn refuses to draw no row
            return decode(np.empty((0, len(self.schema_))), self.schema_)
        rng = check_random_state(random_state)
        mixture = copy(self.mixture_).set_params(random_state=rng)
        return decode(rng.permutation(mixture.sample(n_samples)[0]), self.schema_)
