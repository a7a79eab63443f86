"""Independence: each column on its own."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from jointwise._checks import check_integer
from jointwise._typing import FloatArray
from jointwise.axes import encode_rows
from jointwise.estimators._tables import generator
from jointwise.fitting.choice import choose_dictionaries
from jointwise.joint.density import JointDensity
from jointwise.joint.product import ProductMixture
from jointwise.marginals import Profile
from jointwise.relatives._base import JointRelative, Seed
from jointwise.rows.coded import CodedRows
from jointwise.solvers import simplex_weights
from jointwise.tables.variables import Schema


class IndependenceDensity(JointRelative):
    r"""Product of 1-D fits, as if the columns were independent.

    .. math:: f(x) = \prod_n \sum_l b_{n,l} \, d_{n,l}(x_n)

    Each column gets the dictionary that predicts its held-out counts best, and the maximum-likelihood weights of its
    atoms. This is the 1-D part of JUPAD, and a baseline that every estimate of a joint should beat. Columns of every
    kind are taken; a missing cell is left out of its column.

    Parameters
    ----------
    kinds : mapping of column names to "continuous", "integer", "categorical" or "ordinal", optional
        Overrides the kind detected from the column's type.
    n_bins : int
        Most bins of a column. Categories, and integers with few values, have a bin for each value.
    random_state : int, RandomState or None
        Splits counts into cross-validation folds.

    Attributes
    ----------
    density_ : JointDensity
        With one component.

    Examples
    --------
    >>> from jointwise.relatives import IndependenceDensity
    >>> model = IndependenceDensity(random_state=0).fit({"a": ["x", "x", "y", None], "b": [1, 2, 2, 2]})
    >>> round(model.density_.probability({"a": "x", "b": 2}), 3)
    0.5
    """

    def __init__(self, *, kinds: Mapping[str, str] | None = None, n_bins: int = 128, random_state: Seed = None) -> None:
        self.kinds = kinds
        self.n_bins = n_bins
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_integer("n_bins", self.n_bins, 1)

    def _fit(self, rows: FloatArray, schema: Schema, profile: Profile) -> None:
        axes = profile.axes(schema, self.n_bins)
        coded = CodedRows(schema, axes, encode_rows(rows, axes))
        # only the margins matter, so the best candidate is taken, not the smallest good one
        dictionaries = choose_dictionaries(coded, {}, generator(self.random_state), slack=0.0)
        weights = [
            simplex_weights(d.masses(axis), coded.marginal(n))[:, None]
            for n, (d, axis) in enumerate(zip(dictionaries, axes, strict=True))
        ]
        self.density_ = JointDensity(schema, ProductMixture(np.ones(1), tuple(weights), dictionaries))
