"""The classifiers compared in section IV-B, and the choice of their size on validation rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler

from jointwise._typing import AnyArray
from jointwise.dictionary import Dictionary
from jointwise.estimators import JUPAD, JointClassifier
from jointwise.exceptions import CovarianceError, RankError
from jointwise.experiments.distances import CPD, PAPER, STACK
from jointwise.experiments.splits import TEXTURES, Split
from jointwise.relatives import CPD3, GaussianMixtureDensity

GIVEN = "JUPAD, paper's dictionaries"
# A control: a mixture of products alone, without Gaussian blocks.
ALONE = "JUPAD(), joint alone"
GMM_FULL, GMM_DIAG = "GMM-Full", "GMM-Diag"
# CPD-3 on textures uses 2% of the 2,300 triples of 25 pixels and fewer sweeps; otherwise a fit would take minutes.
TEXTURE_TRIPLES, TEXTURE_SWEEPS = 0.02, 100


class DensityClassifier:
    r"""Classify by :math:`\arg\max_y p(x \mid y)\, p(y)`, with a density fitted to the rows of each class.

    Columns are standardised first, since starts of mixtures and floors of densities suit columns of unit variance.

    Parameters
    ----------
    density : estimator with ``fit`` and ``score_samples``
    uniform_prior : bool
        Whether all classes are taken as equally frequent; by default their shares of the rows are used.
    """

    def __init__(self, density: Any, *, uniform_prior: bool = False) -> None:
        self.density = density
        self.uniform_prior = uniform_prior

    def fit(self, X: AnyArray, y: AnyArray) -> Self:
        """Fit a density to each class."""
        self.classes_, counts = np.unique(y, return_counts=True)
        shares = np.full(len(counts), 1 / len(counts)) if self.uniform_prior else counts / counts.sum()
        self.log_prior_ = np.log(shares)
        self.scaler_ = StandardScaler().fit(X)
        scaled = self.scaler_.transform(X)
        self.densities_ = [clone(self.density).fit(scaled[y == c]) for c in self.classes_]
        return self

    def predict(self, X: AnyArray) -> AnyArray:
        """Return the most probable class of each row."""
        return np.asarray(self.classes_[np.argmax(self._scores(X), axis=1)])

    def predict_proba(self, X: AnyArray) -> AnyArray:
        """Return the probabilities of the classes of each row; shape (n, classes)."""
        return np.asarray(softmax(self._scores(X), axis=1))

    def _scores(self, X: AnyArray) -> AnyArray:
        """Return log p(x | y) p(y); shape (n, classes)."""
        scaled = self.scaler_.transform(X)
        scores = [density.score_samples(scaled) for density in self.densities_]
        return np.asarray(np.column_stack(scores) + self.log_prior_)


@dataclass(frozen=True)
class Method:
    """A classifier and the sizes it is tried with."""

    key: str  # its name in task keys
    # takes a size, the paper's dictionaries, whether the rows are textures, and a seed; returns a classifier
    make: Callable[[int, Mapping[str, Dictionary], bool, int], Any]
    size_name: str = ""  # symbol of the size; empty if there is none to choose
    # increasing sizes, chosen from by the accuracy on the validation rows
    sizes: Sequence[int] = (0,)
    texture_sizes: Sequence[int] = (0,)
    quick_sizes: Sequence[int] = (0,)
    datasets: Sequence[str] | None = None  # data sets it is run on; None is all

    def candidates(self, dataset: str, *, quick: bool) -> Sequence[int]:
        """Return the sizes to try."""
        if quick:
            return self.quick_sizes
        return self.texture_sizes if dataset == TEXTURES else self.sizes


def _mixture(k: int, kind: Any, seed: int) -> Any:
    return DensityClassifier(GaussianMixtureDensity(k, covariance_type=kind, random_state=seed))


def _cpd3(n_components: int, seed: int, *, textures: bool) -> Any:
    fewer: dict[str, Any] = {"triples": TEXTURE_TRIPLES, "max_iter": TEXTURE_SWEEPS} if textures else {}
    return DensityClassifier(CPD3(n_components, n_init=1, random_state=seed, **fewer), uniform_prior=True)


def _paper(n_components: int, dictionaries: Mapping[str, Dictionary], seed: int) -> Any:
    return JointClassifier(JUPAD(n_components, method="paper", dictionaries=dictionaries, random_state=seed))


METHODS: dict[str, Method] = {
    STACK: Method("joint", lambda _, __, ___, seed: JointClassifier(random_state=seed)),
    ALONE: Method("jupad-alone", lambda _, __, ___, seed: JointClassifier(JUPAD(random_state=seed))),
    PAPER: Method("jupad-paper", lambda F, _, __, seed: _paper(F, {}, seed), "F", (5, 10, 15, 20, 30), (10, 20), (10,)),
    GIVEN: Method(
        "jupad-dictionaries",
        lambda F, dictionaries, _, seed: _paper(F, dictionaries, seed),
        "F",
        (5, 10, 15, 20, 30),
        (5, 10, 20, 30),
        (10,),
        ("Wifi", "Seeds", TEXTURES),
    ),
    CPD: Method(
        "cpd3", lambda F, _, textures, seed: _cpd3(F, seed, textures=textures), "F", (3, 5, 10, 15), (5, 10), (5,)
    ),
    GMM_FULL: Method(
        "gmm-full",
        lambda k, _, __, seed: _mixture(k, "full", seed),
        "k",
        (1, 2, 3, 5, 8, 12, 16, 20),
        (1, 2, 4, 8, 16),
        (1, 3),
    ),
    GMM_DIAG: Method(
        "gmm-diag",
        lambda k, _, __, seed: _mixture(k, "diag", seed),
        "k",
        (1, 2, 3, 5, 8, 12, 16, 20, 25, 30),
        (1, 2, 4, 8, 16, 32),
        (1, 5, 20),
    ),
    "GaussianNB": Method("naive-bayes", lambda *_: GaussianNB()),
    "RandomForest": Method("forest", lambda *settings: RandomForestClassifier(random_state=settings[-1])),
    "HistGradientBoosting": Method(
        "boosting", lambda *settings: HistGradientBoostingClassifier(random_state=settings[-1])
    ),
}


def chosen_on_validation(method: Method, split: Split, sizes: Sequence[int], seed: int) -> tuple[Any, int]:
    """Fit every size; return the classifier with the best validation accuracy (the smaller of equals) and its size."""
    best: tuple[float, Any, int] | None = None
    for size, classifier in _fitted(method, split, sizes, seed):
        accuracy = float(np.mean(classifier.predict(split.validation.X) == split.validation.y))
        if best is None or accuracy > best[0]:
            best = accuracy, classifier, size
    assert best is not None  # an error at the first size has been raised
    return best[1], best[2]


def _fitted(method: Method, split: Split, sizes: Sequence[int], seed: int) -> Iterator[tuple[int, Any]]:
    """Yield classifiers of increasing size, until one cannot be fitted."""
    for size in sizes:
        classifier = method.make(size, split.dictionaries, bool(split.images), seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # one that stops at its limit of steps is still a rival
            try:
                classifier.fit(split.train.X, split.train.y)
            except (RankError, CovarianceError):
                if size == sizes[0]:
                    raise
                return
        yield size, classifier
