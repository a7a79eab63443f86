"""JointImputer: gaps filled from a joint density."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from jointwise.estimators._composed import ComposedEstimator, weights_for
from jointwise.estimators._tables import generator
from jointwise.joint.prediction import fill
from jointwise.tables import decode, encode, with_columns
from jointwise.tables.variables import Schema


class JointImputer(OneToOneFeatureMixin, TransformerMixin, ComposedEstimator):
    """Fill each gap with its best guess given the rest of its row, or with a draw.

    The guess is the most probable category, the conditional mean, or the integer nearest to it; where heavy tails
    leave no mean it is the conditional median.

    Parameters
    ----------
    estimator : estimator with ``density_``, optional
        Learns the joint density of the columns; :class:`jointwise.JointEstimator` by default. It is cloned, not
        changed.
    sample_posterior : bool
        Draw the gaps of a row together from their distribution given its observed cells, for multiple imputation.
    random_state : int, RandomState or None
        Seed of the draws, and of the estimator's clone; None leaves the estimator's own. An integer gives the same
        draws at each call of ``transform``, None gives others.

    Attributes
    ----------
    estimator_ : estimator
        The fitted clone.
    density_ : JointDensity
        The joint density of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from jointwise import JUPAD, JointImputer
    >>> X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 50, axis=0)
    >>> X[0, 1] = X[-1, 0] = np.nan
    >>> JointImputer(JUPAD(n_components=2), random_state=0).fit_transform(X)[[0, -1]].round(2)
    array([[0., 0.],
           [1., 1.]])
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        sample_posterior: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.sample_posterior = sample_posterior
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the joint density of the columns of ``X``.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features), or a table that is not in memory
            Whatever the estimator can fit.
        y : ignored
        sample_weight : array of shape (n_samples,) or str, optional
            How often each row counts.
        """
        inner = self._unfitted()
        self._keep_fitted(inner.fit(X, **weights_for(inner, sample_weight)))
        self._adopt_names(inner.n_features_in_)
        return self

    def transform(self, X: Any) -> Any:
        """``X`` with every gap filled, as the kind of table it is or that ``set_output`` asks for.

        A category not seen at fit counts as a gap, with a warning. The index of a pandas frame is kept.
        """
        check_is_fitted(self, "density_")
        table, density = self._read(X, reset=False), self.density_
        rows = encode(table, density.schema, unseen="missing")
        if self.sample_posterior:
            drawn = density.mixture.complete(rows, generator(self.random_state))
            filled = np.where(np.isnan(rows), density.schema.settle(drawn), rows)
        else:
            filled = fill(density.mixture, density.schema, rows)
        container = self._asked_container() or table.container
        frame = decode(filled, Schema(density.schema.variables, container))
        left_out = {*getattr(self, "feature_names_in_", table.names)} - {*density.names}
        if left_out:
            frame = with_columns(frame, container, table, left_out)
        if container == table.container == "pandas":
            named = {str(name): name for name in X.columns}
            frame.index, frame.columns = X.index, [named[name] for name in frame.columns]
        return frame

    def _asked_container(self) -> str | None:
        """Library that ``set_output`` asks for: written here, each column keeps its type, also in a mixed table."""
        asked = getattr(self, "_sklearn_output_config", {}).get("transform", get_config()["transform_output"])
        return None if asked == "default" else str(asked)
