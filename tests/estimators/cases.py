"""Small tables in every container, and settings that make fits quick."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from jointwise import JUPAD, JointClassifier, JointImputer

# Few components and one start: most tests ask for manners, not for accuracy.
QUICK = {"n_components": 2, "n_init": 1, "random_state": 0}
CONTAINERS = ("numpy", "dict", "pandas", "polars", "pyarrow")
FRAMES = CONTAINERS[1:]


def mixed_columns(n=80, seed=0, *, gaps=False):
    """Columns of every kind that depend on one hidden class; with gaps, each has some."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(n) < 0.5
    columns = {
        "x": rng.normal(size=n) + 3 * hidden,
        "k": rng.poisson(2 + 4 * hidden).astype(np.int64),
        "job": np.where(rng.random(n) < 0.2 + 0.6 * hidden, "cook", "nurse").astype(object),
        "flag": rng.random(n) < 0.3 + 0.4 * hidden,
        "when": np.datetime64("2024-01-01T00:00:00", "us") + (rng.integers(0, 10**6, n) * 10**6).astype("m8[us]"),
    }
    if gaps:
        columns = {name: column.astype(object) for name, column in columns.items()}
        for position, column in enumerate(columns.values()):
            column[position::7] = None
    return columns


def table(container, columns):
    """The columns as a table; an array holds objects unless all columns are numbers."""
    if container == "dict":
        return dict(columns)
    if container == "numpy":
        plain = all(column.dtype.kind in "fi" for column in columns.values())
        stacked = np.empty((len(next(iter(columns.values()))), len(columns)), dtype=float if plain else object)
        for position, column in enumerate(columns.values()):
            stacked[:, position] = column.tolist() if column.dtype.kind == "M" else column
        return stacked
    if container == "pandas":
        return pd.DataFrame(columns).infer_objects()
    frame = pl.DataFrame({name: column.tolist() for name, column in columns.items()})
    return frame if container == "polars" else frame.to_arrow()


def library(frame):
    names = {np.ndarray: "numpy", dict: "dict", pd.DataFrame: "pandas", pl.DataFrame: "polars", pa.Table: "pyarrow"}
    return names[type(frame)]


def same_model(a, b):
    """Whether two fitted estimators hold the same numbers, bit for bit."""
    left, right = a.density_.mixture, b.density_.mixture
    return np.array_equal(left.weights, right.weights) and all(
        np.array_equal(p, q) for p, q in zip(left.coefficients, right.coefficients, strict=True)
    )


def make_classifier(n_components="auto", **parameters):
    """A classifier that holds a JUPAD with these parameters."""
    return JointClassifier(JUPAD(n_components, **parameters))


def make_imputer(n_components="auto", *, sample_posterior=False, random_state=None, **parameters):
    """An imputer that holds a JUPAD with these parameters."""
    return JointImputer(JUPAD(n_components, **parameters), sample_posterior=sample_posterior, random_state=random_state)
