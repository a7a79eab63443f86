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
from jointwise.relatives._base import SEEDS, JointRelative
from jointwise.rows.coded import CodedRows
from jointwise.solvers import simplex_weights
from jointwise.tables.variables import Schema


class IndependenceDensity(JointRelative):
    r"""Product of 1-D fits, as if the columns had nothing to do with each other.

    .. math:: f(x) = \prod_n \sum_l b_{n,l} \, d_{n,l}(x_n)

    Each column gets the dictionary that predicts its held-out counts best, and the weights of its atoms by maximum
    likelihood: the 1-D part of JUPAD, and a baseline that no estimate of a joint should fall behind. Columns of every
    kind are taken, and missing cells are left out column by column.

    Parameters
    ----------
    kinds : mapping of column names to "continuous", "integer", "categorical" or "ordinal", optional
        Overrides what is found from the column's type.
    n_bins : int
        The most bins of a column that is neither categorical nor an integer with few values.
    random_state : int, RandomState or None
        Deals counts to cross-validation folds.

    Attributes
    ----------
    density_ : JointDensity
        Of one component.

    Examples
    --------
    >>> from jointwise.relatives import IndependenceDensity
    >>> model = IndependenceDensity(random_state=0).fit({"a": ["x", "x", "y", None], "b": [1, 2, 2, 2]})
    >>> round(model.density_.probability({"a": "x", "b": 2}), 3)
    0.5
    """

    def __init__(
        self, *, kinds: Mapping[str, str] | None = None, n_bins: int = 128, random_state: SEEDS = None
    ) -> None:
        self.kinds = kinds
        self.n_bins = n_bins
        self.random_state = random_state

    def _given_kinds(self) -> Mapping[str, str] | None:
        return self.kinds

    def _check_parameters(self) -> None:
        check_integer("n_bins", self.n_bins, 1)

    def _fit(self, rows: FloatArray, schema: Schema, profile: Profile) -> None:
        axes = profile.axes(schema, self.n_bins)
        coded = CodedRows(schema, axes, encode_rows(rows, axes))
        # nothing but the margin is at stake, so the best candidate is taken, not the smallest good one
        dictionaries = choose_dictionaries(coded, {}, generator(self.random_state), slack=0.0)
        weights = [
            simplex_weights(d.masses(axis), coded.marginal(n))[:, None]
            for n, (d, axis) in enumerate(zip(dictionaries, axes, strict=True))
        ]
        self.density_ = JointDensity(schema, ProductMixture(np.ones(1), tuple(weights), dictionaries))
