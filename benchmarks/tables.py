"""Mean test log-likelihood on real tables and on the paper's laws, beside rivals in the same run.

Real tables: rows permuted by `default_rng(split)`, the first three quarters to learn from, the class as a category. The
laws: fresh draws, `JointEstimator()` beside `JUPAD()` at every size.

A Gaussian mixture has full covariances and is fitted to each class, with k by validation: a quarter of the training
rows chooses k for all classes together. A vine is fitted to each class too, where pyvinecopulib is installed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec

import numpy as np
import sklearn.datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from benchmarks.accuracy import LAWS
from benchmarks.measure import kinds_of, timed, train_and_test
from benchmarks.report import Row
from benchmarks.rivals import Vine
from jointwise import JUPAD, JointEstimator, datasets

# Held-out log-likelihood of a plain prototype, which is to be reached.
FLOORS = {
    "seeds": 4.4, "breast cancer": 42.4, "raisin": -25.3, "banknote": -6.6, "wifi": -20.05, "wine": -18.2,
}  # fmt: skip
SPLITS = (0, 1, 2)
CLUSTERS = (1, 2, 3, 4, 6, 8, 12)
SIZES = (500, 2_000, 10_000)
METHODS = ("JUPAD()", "GMM, k by validation", "vine", "truth", "JointEstimator() s", "JUPAD() s")
# Regularisation of a covariance, on standardised columns.
RIDGE = 1e-3

Table = tuple[np.ndarray, np.ndarray]
Columns = dict[str, np.ndarray]


def run(names: Sequence[str] = (*FLOORS, *LAWS)) -> list[Row]:
    """Return a row for each table, and for each law and size."""
    rows = [_on_table(name) for name in FLOORS if name in names]
    for law in LAWS:
        if law in names:
            rows += [_on_law(law, n) for n in SIZES]
    return rows


def real_table(name: str) -> Table:
    """Return the numbers of a table, shape (n, N), and its classes, shape (n,)."""
    if name in ("wine", "breast cancer"):
        X, y = getattr(sklearn.datasets, f"load_{name.replace(' ', '_')}")(return_X_y=True)
    else:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return np.asarray(X, dtype=float), np.unique(np.asarray(y), return_inverse=True)[1]


def split_table(table: Table, split: int) -> tuple[Table, Table]:
    """Return three quarters of the rows and the rest."""
    X, y = table
    order = np.random.default_rng(split).permutation(len(X))
    cut = round(0.75 * len(X))
    train, test = order[:cut], order[cut:]
    return (X[train], y[train]), (X[test], y[test])


def as_columns(table: Table) -> Columns:
    """Return a table with the class as a category."""
    X, y = table
    return {f"x{n}": column for n, column in enumerate(X.T)} | {"class": np.array([f"class {k}" for k in y])}


def kinds_for(name: str, n_columns: int) -> dict[str, str] | None:
    """Return the kinds that are declared: the signal strengths of Wifi are floats, though they are whole."""
    return {f"x{n}": "continuous" for n in range(n_columns)} if name == "wifi" else None


def _on_table(name: str) -> Row:
    each = [dict(_scores(name, *split_table(real_table(name), split), split)) for split in SPLITS]
    found = {method: float(np.mean([e[method] for e in each])) for method in each[0]}
    return _row(name, "", found, FLOORS[name])


def _scores(table: str, train: Table, test: Table, seed: int) -> Iterator[tuple[str, float]]:
    rows, fresh = as_columns(train), as_columns(test)
    kinds = kinds_for(table, train[0].shape[1])
    for name, estimator in (("JointEstimator()", JointEstimator), ("JUPAD()", JUPAD)):
        model, seconds = timed(lambda e=estimator: e(kinds=kinds, random_state=seed).fit(rows))  # type: ignore[misc]
        yield name, float(model.density_.logpdf(fresh).mean())
        yield f"{name} s", seconds
    yield "GMM, k by validation", float(gaussian_mixtures(train, test, seed).mean())
    if find_spec("pyvinecopulib"):
        yield "vine", float(_by_class(train, test, Vine).mean())


def gaussian_mixtures(train: Table, test: Table, seed: int) -> np.ndarray:
    """Return log-densities of test rows under one Gaussian mixture per class; shape (n,)."""
    scaler = StandardScaler().fit(train[0])
    shift = float(np.log(scaler.scale_).sum())
    train, test = (scaler.transform(train[0]), train[1]), (scaler.transform(test[0]), test[1])
    learned, held = split_table(train, seed + 1_000)

    def of(k: int) -> Callable[[np.ndarray], GaussianMixture]:
        return lambda X: GaussianMixture(min(k, len(X) - 1), reg_covar=RIDGE, n_init=3, random_state=seed).fit(X)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        best = max(CLUSTERS, key=lambda k: _by_class(learned, held, of(k)).mean())
        return _by_class(train, test, of(best)) - shift


def _by_class(train: Table, test: Table, fit: Callable[[np.ndarray], object]) -> np.ndarray:
    """Return log P(class) + log f(x | class) of test rows, with one fit per class."""
    found = np.empty(len(test[0]))
    for label in np.unique(test[1]):
        here, own = test[1] == label, train[0][train[1] == label]
        model = fit(own)
        found[here] = model.score_samples(test[0][here]) + np.log(len(own) / len(train[0]))  # type: ignore[attr-defined]
    return found


def _on_law(name: str, n: int) -> Row:
    found: dict[str, list[float]] = {"JointEstimator()": [], "JUPAD()": [], "truth": []}
    for seed in SPLITS:
        law = LAWS[name][0](seed)
        X, Z = train_and_test(law, n, seed)
        for method, estimator in (("JointEstimator()", JointEstimator), ("JUPAD()", JUPAD)):
            model = estimator(kinds=kinds_of(law), random_state=seed).fit(X)
            found[method].append(float(model.score_samples(Z).mean()))
        found["truth"].append(float(law.logpdf(Z).mean()))
    means = {method: float(np.mean(scores)) for method, scores in found.items()}
    return _row(name, n, means, means["JUPAD()"] - 0.02)


def _row(name: str, n: int | str, found: dict[str, float], floor: float) -> Row:
    ours = found["JointEstimator()"]
    row: Row = {
        "table": name,
        "n": n,
        "JointEstimator()": ours,
        "floor": floor,
        "met": "yes" if ours >= floor else "NO",
    }
    return row | {method: found.get(method, "") for method in METHODS}
