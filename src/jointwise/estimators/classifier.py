"""JUPADClassifier: the class as one more column of the joint."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from jointwise._typing import AnyArray, FloatArray
from jointwise.axes import DiscreteAxis, encode_rows
from jointwise.estimators._base import JointEstimator, row_weights
from jointwise.exceptions import InputError
from jointwise.joint.prediction import category_probabilities
from jointwise.marginals import CodedRows, PairwiseMarginals, Profile
from jointwise.marginals.sources import find_source
from jointwise.tables import encode
from jointwise.variables import Kind, Schema, Variable


class JUPADClassifier(ClassifierMixin, JointEstimator):
    """Classify by the largest P(class | row) under the joint density of features and class.

    The class is one more categorical column of the table, so gaps in the features, at fit or at prediction, need no
    treatment: they are integrated out. Parameters are those of :class:`jointwise.JUPAD`.

    Attributes
    ----------
    classes_ : array
        The classes, sorted.
    density_ : JointDensity
        Joint density of the features and of the class, which is the last variable.
    target_name_ : str
        Name of the class in ``density_``.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from jointwise import JUPADClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> bool(JUPADClassifier(n_components=3, random_state=0).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9)
    True
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the joint density of ``X`` and ``y``.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
        """
        if find_source(X) is not None:
            raise InputError(
                f"{type(self).__name__} takes tables in memory; got {type(X).__name__}. Read the table first, or fit "
                "JUPAD with the class as one of its columns and ask its `density_` for the class of other rows."
            )
        if y is None:
            raise InputError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        self._check_parameters()
        table = self._read(X, reset=True)
        target = column_or_1d(check_array(y, ensure_2d=False, dtype=None, input_name="y"), warn=True)
        check_classification_targets(target)
        check_consistent_length(target, np.empty(table.n_rows))
        weights = row_weights(sample_weight, table)
        self.classes_, codes = np.unique(target, return_inverse=True)

        schema, axes = self._axes(Profile.of(table, weights))
        self.target_name_ = _unused_name(getattr(y, "name", None), schema.names)
        labels = Variable(
            self.target_name_, Kind.CATEGORICAL, categories=_plain(self.classes_), dtype=_dtype(self.classes_)
        )
        rows = np.column_stack([encode(table, schema), codes])
        axes = (*axes, DiscreteAxis(np.arange(len(self.classes_), dtype=float)))
        joint = Schema((*schema, labels), schema.container)
        self._fit_rows(CodedRows(joint, axes, encode_rows(rows, axes), weights))
        return self

    def fit_marginals(self, marginals: PairwiseMarginals) -> Self:
        """Fit from pair counts alone; no row is needed.

        Parameters
        ----------
        marginals : PairwiseMarginals
            Counts of every pair of columns, the class last; ``marginals.select`` puts columns in order.
        """
        target = marginals.schema.variables[-1]
        if target.categories is None or len(marginals.schema) < 2:
            raise InputError(
                f"The last variable must be the class, a categorical one after at least one feature; {target.name!r} "
                f"is {target.kind}, of {len(marginals.schema)} in all. Use `marginals.select` to put the class last."
            )
        super().fit_marginals(marginals)
        self.classes_ = np.array(target.categories)
        self.target_name_ = target.name
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """P(class | row), columns in the order of ``classes_``; shape (n_samples, n_classes)."""
        rows = self._rows(X)
        with_class = np.column_stack([rows, np.full(len(rows), np.nan)])
        mixture = self.density_.mixture
        return category_probabilities(
            mixture, mixture.n_variables - 1, mixture.posterior(with_class), len(self.classes_)
        )

    def predict(self, X: Any) -> AnyArray:
        """Most probable class of each row."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[best])

    def _feature_schema(self) -> Schema:
        return self.density_.schema.select(self.density_.names[:-1])


def _unused_name(wanted: Any, taken: tuple[str, ...]) -> str:
    name = str(wanted) if wanted is not None else "target"
    while name in taken:
        name += "_"
    return name


def _plain(classes: AnyArray) -> tuple[Any, ...]:
    return tuple(classes.tolist())


def _dtype(classes: AnyArray) -> str:
    return {"b": "bool", "i": "int64", "u": "int64", "f": "float64"}.get(classes.dtype.kind, "string")
