"""Density estimators of other packages for tables of numbers; packages not installed are left out."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from importlib.util import find_spec
from io import StringIO
from typing import Any, Protocol

import numpy as np
from scipy.stats import gaussian_kde
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

CLUSTERS = (5, 10, 20)


class Fitted(Protocol):
    """A fitted rival."""

    def score_samples(self, X: np.ndarray) -> np.ndarray:
        """Return the log-density of each row."""


def rivals(X: np.ndarray, *, states: bool) -> Iterator[tuple[str, list[Fitted]]]:
    """Yield the name and fits of each rival; if there are several fits, the best in hindsight counts.

    Parameters
    ----------
    X : array of shape (n, N)
    states : bool
        Whether some columns are states, which vines cannot take.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a fit that stops early is still a rival
        yield "GMM full, best k", [GaussianMixture(k, random_state=0).fit(X) for k in CLUSTERS]
        yield "GMM diag, best k", [GaussianMixture(k, covariance_type="diag", random_state=0).fit(X) for k in CLUSTERS]
    if find_spec("stepmix"):
        yield "StepMix, best k", [_stepmix(X, k) for k in CLUSTERS[:2]]
    if find_spec("pyvinecopulib") and not states:
        yield "vine", [Vine(X)]


def _stepmix(X: np.ndarray, k: int) -> Any:
    from stepmix.stepmix import StepMix

    with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        warnings.simplefilter("ignore")
        model = StepMix(k, measurement="continuous", random_state=0, progress_bar=0, verbose=0).fit(X)
    return _StepMixScores(model)


class _StepMixScores:
    def __init__(self, model: Any) -> None:
        self._model = model

    def score_samples(self, X: np.ndarray) -> np.ndarray:
        return np.array([self._model.score(row[None]) for row in X])


class Vine:
    """Vine copula with nonparametric pairs (pyvinecopulib) on kernel margins."""

    def __init__(self, X: np.ndarray) -> None:
        import pyvinecopulib as pv

        self._margins = [gaussian_kde(column) for column in X.T]
        self._sorted = np.sort(X, axis=0)
        controls = pv.FitControlsVinecop(family_set=[pv.BicopFamily.tll, pv.BicopFamily.indep])
        self._copula = pv.Vinecop.from_data(self._uniforms(X), controls=controls)

    def _uniforms(self, X: np.ndarray) -> np.ndarray:
        n = len(self._sorted)
        ranks = [np.searchsorted(s, x, side="right") for s, x in zip(self._sorted.T, X.T, strict=True)]
        return np.asfortranarray(np.clip(np.column_stack(ranks) / (n + 1), 0.5 / n, 1 - 0.5 / n))

    def score_samples(self, X: np.ndarray) -> np.ndarray:
        """Log-density of each row."""
        margins = sum(kde.logpdf(column) for kde, column in zip(self._margins, X.T, strict=True))
        return np.asarray(margins + np.log(np.maximum(self._copula.pdf(self._uniforms(X)), 1e-300)))
