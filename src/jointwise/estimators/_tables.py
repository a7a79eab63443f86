"""What every estimator of a table shares: reading it with scikit-learn's manners, and randomness."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import validate_data

from jointwise._checks import check_weights, warn_caller
from jointwise._typing import FloatArray
from jointwise.exceptions import InputError, WeightsWarning
from jointwise.marginals import Profile
from jointwise.rows.base import Rows
from jointwise.tables import Table, read_table
from jointwise.tables.variables import Schema

# Weights whose mean is between these are taken to count rows, as in a table of counts.
FEWEST, MOST = 0.1, 100.0


class TableEstimator(BaseEstimator):
    """An estimator whose ``X`` is any table: an array, a mapping or a frame."""

    def _read(self, X: Any, *, reset: bool) -> Table:
        """Read a table, recording or checking its names and number of columns as scikit-learn does.

        A mapping, which scikit-learn does not know, is read by name: order and further columns do not matter.
        """
        table = read_table(X)
        if table.container != "dict":
            known = X if hasattr(X, "shape") else np.empty((0, len(table.names)))
            validate_data(self, known, reset=reset, skip_check_array=True)
        elif reset:
            self._record_names(table)
        return table

    def _record_names(self, named: Table | Schema | Profile) -> None:
        """Keep the names and number of features; columns of an array have no names of their own."""
        self.n_features_in_ = len(named.names)
        if named.container != "numpy":
            self.feature_names_in_ = np.array(named.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def row_weights(sample_weight: Any, table: Table) -> FloatArray | None:
    """Return the checked weights of the rows, not all zero, or None."""
    weights = check_weights(sample_weight, table.n_rows)
    if weights is not None and not weights.any():
        raise InputError("Every sample_weight is zero, so there is nothing to learn from; give some rows a weight.")
    return weights


def warn_of_weights(rows: Rows) -> None:
    """Warn if the weights of rows sum to far more or far less than their number."""
    n = len(rows)
    if rows.n_rows > 0 and not FEWEST <= rows.n_rows / n <= MOST:
        warn_caller(
            f"The weights of the {n:,} rows sum to {rows.n_rows:.3g}. A weight says how often its row counts, so the "
            f"fit trusts them as it would {rows.n_rows:.3g} rows. If they only say how rows compare with each other, "
            "divide them by their mean: sample_weight / sample_weight.mean().",
            WeightsWarning,
        )


def generator(random_state: int | np.random.RandomState | None) -> np.random.Generator:
    """Draw a generator from ``random_state``, so that an integer gives the same numbers each time."""
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    return np.random.default_rng(seed)
