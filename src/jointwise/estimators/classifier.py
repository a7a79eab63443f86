"""JointClassifier: the class as one more column of the joint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, column_or_1d

from jointwise._checks import shown, unknown_name
from jointwise._typing import AnyArray, FloatArray
from jointwise.estimators._composed import ComposedEstimator, weights_for
from jointwise.estimators.jupad import JUPAD
from jointwise.exceptions import InputError
from jointwise.joint.classes import ClassModel, with_levels
from jointwise.marginals import PairwiseMarginals
from jointwise.rows.sources import LocalSource, find_source
from jointwise.tables import Table, encode, read_table
from jointwise.tables.variables import unused_name


class JointClassifier(ClassifierMixin, ComposedEstimator):
    r"""Classify by the largest P(class | row) under the joint density of features and class.

    The class is one more categorical column of the table, so gaps in the features, at fit or at prediction, need no
    treatment: they are integrated out.

    .. math:: P(y \mid x) = \frac{f(x, y)}{\sum_k f(x, k)}

    Parameters
    ----------
    estimator : estimator with ``density_``, optional
        Learns the joint density of features and class; ``JointEstimator()`` by default. It is cloned, not changed,
        and told in its parameter ``kinds`` that the class is categorical; one with a parameter ``target``, as
        :class:`JointEstimator` has, is told there that the class is what is asked for, so that its experts are weighed
        by how well they predict it.
    random_state : int, RandomState or None
        Seed of the estimator's clone; None leaves the estimator's own.

    Attributes
    ----------
    classes_ : array
        The classes, sorted.
    estimator_ : estimator
        The fitted clone.
    density_ : JointDensity
        Joint density f of the features and of the class, which is the last variable. Levels of the class that no row
        has are left out.
    target_name_ : str
        Name of the class in ``density_``.
    class_model_ : ClassModel
        What predicts classes, with ``save``. :meth:`jointwise.ClassModel.load` reads it back, and
        :func:`jointwise.load` reads ``density_`` from the same file.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from jointwise import JUPAD, JointClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = JointClassifier(JUPAD(n_components=3, random_state=0)).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9)
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.random_state = random_state

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
        inner = self._unfitted()
        table = self._read(X, reset=True)
        target = column_or_1d(check_array(y, ensure_2d=False, dtype=None, input_name="y"), warn=True)
        check_classification_targets(target)
        check_consistent_length(target, np.empty(table.n_rows))
        named = getattr(y, "name", None)
        name = unused_name("target" if named is None else str(named), table.names)
        joint = table.with_column(name, target)
        _with_class(inner, name)
        self._keep_density(inner.fit(joint, **weights_for(inner, sample_weight)), name)
        self.classes_ = np.array(self.class_model_.classes, dtype=target.dtype)
        return self

    def fit_blocks(self, blocks: Callable[[], Iterable[Any]], target: str, sample_weight: str | None = None) -> Self:
        """Learn from a table that comes in blocks and holds the class as one of its columns.

        The fit is the same, bit for bit, as that of the whole table.

        Parameters
        ----------
        blocks : callable
            Returns the blocks, tables of any kind with the same columns, from the first on at each call.
        target : str
            The column that holds the class, in every row; each of its values is a class, also if they are numbers.
        sample_weight : str, optional
            The column that holds how often each row counts; it is not a feature.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from jointwise import JUPAD, JointClassifier
        >>> X, y = load_wine(return_X_y=True)
        >>> parts = [{"acid": X[n, 1], "hue": X[n, 10], "kind": y[n]} for n in np.array_split(np.arange(len(y)), 3)]
        >>> model = JointClassifier(JUPAD(2, random_state=0)).fit_blocks(lambda: parts, "kind")
        >>> model.classes_.tolist(), model.feature_names_in_.tolist()
        ([0, 1, 2], ['acid', 'hue'])
        """
        inner = self._unfitted()

        def class_last() -> Iterator[Table]:
            return (_class_last(read_table(block), target) for block in blocks())

        first_block = next(class_last(), None)
        is_ordered = first_block is not None and first_block.read(-1).ordered
        _with_class(inner, target, "ordinal" if is_ordered else "categorical")
        if sample_weight is None:
            fitted = inner.fit_blocks(class_last)
        else:
            fitted = inner.fit(LocalSource(class_last).with_weights(sample_weight))
        self._keep_density(fitted, target)
        self._adopt_names(inner.n_features_in_ - 1)
        self.classes_ = np.array(self.class_model_.classes)
        return self

    def fit_marginals(self, marginals: PairwiseMarginals) -> Self:
        """Fit from pair counts alone; no row is needed. The default estimator is then a :class:`jointwise.JUPAD`.

        Parameters
        ----------
        marginals : PairwiseMarginals
            Counts of every pair of columns, the class last; ``marginals.select`` puts columns in order.
        """
        target = marginals.schema.variables[-1]
        if target.categories is None or len(marginals.schema) < 2:
            raise InputError(
                f"The last variable must be the class, a categorical one after at least one feature; "
                f"{shown(target.name)} is {target.kind}, of {len(marginals.schema)} in all. Use `marginals.select` to "
                "put the class last."
            )
        inner = self._unfitted(JUPAD)
        if not hasattr(inner, "fit_marginals"):
            raise InputError(
                f"`estimator` must be one that fits counts of pairs, such as JUPAD(); {type(inner).__name__} needs "
                "rows: use `fit`."
            )
        self._keep_density(inner.fit_marginals(marginals), target.name)
        self._adopt_names(len(marginals.schema) - 1)
        self.classes_ = np.array(self.class_model_.classes)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """P(class | row), columns in the order of ``classes_``; shape (n_samples, n_classes)."""
        check_is_fitted(self, "density_")
        rows = encode(self._read(X, reset=False), self.class_model_.features, unseen="missing")
        return self.class_model_.probabilities(rows)

    def predict(self, X: Any) -> AnyArray:
        """Most probable class of each row."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[best])

    def _keep_density(self, fitted: Any, target: str) -> None:
        """Keep what the held estimator has learned, without classes that no row has."""
        self._keep_fitted(fitted)
        if len(self.density_.names) == 1:
            raise InputError(f"The table has no column beside {shown(target)} to predict it from; keep some.")
        counts = getattr(getattr(fitted, "fit_", None), "level_counts", {}).get(target)
        if counts is not None:
            self.density_ = with_levels(self.density_, target, np.flatnonzero(counts))
        self.target_name_ = target
        self.class_model_ = ClassModel(self.density_, target)


def _with_class(estimator: Any, name: str, usual: str = "categorical") -> None:
    """Tell an estimator that a column is the class, of the usual kind unless it was told another."""
    if "kinds" not in estimator.get_params():
        raise InputError(
            f"`estimator` must have a parameter `kinds`, to be told that the class is categorical; "
            f"{type(estimator).__name__} has none."
        )
    if name in getattr(estimator, "drop", ()):
        raise InputError(f"The class {shown(name)} cannot be left out; take it out of the estimator's `drop`.")
    kinds = {} if estimator.kinds is None else estimator.kinds
    if not isinstance(kinds, Mapping):
        return  # the estimator itself says what is wrong
    kind = kinds.get(name, usual)
    if kind not in ("categorical", "ordinal"):
        raise InputError(f"The class {shown(name)} must be categorical or ordinal; its kind cannot be {shown(kind)}.")
    estimator.set_params(kinds={**kinds, name: kind})
    if "target" in estimator.get_params():
        estimator.set_params(target=name)


def _class_last(table: Table, target: str) -> Table:
    """Return a table with the class as its last column, which no row may lack."""
    if target not in table.names:
        raise unknown_name("column", target, table.names)
    at = table.names.index(target)
    missing = int(np.isnan(table.read(at).values).sum())
    if missing:
        raise InputError(f"The class {shown(target)} is missing in {missing:,} rows; leave them out.")
    return table.select([*(n for n in range(len(table.names)) if n != at), at])
