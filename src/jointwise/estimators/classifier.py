"""JointClassifier: the class as one more column of the joint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, column_or_1d

from jointwise._checks import shown, unknown_name, warn_caller
from jointwise._progress import progress, tell
from jointwise._typing import AnyArray, FloatArray
from jointwise.estimators._columns import most_bins
from jointwise.estimators._composed import ComposedEstimator, weights_for
from jointwise.estimators._summary import warn_unfinished
from jointwise.estimators._tables import generator
from jointwise.exceptions import InputError
from jointwise.fitting import Fit
from jointwise.fitting.second import fit_second, without_unmet_classes
from jointwise.joint.classes import ClassModel, SecondDensity
from jointwise.joint.density import JointDensity
from jointwise.marginals import PairwiseMarginals
from jointwise.rows.sources import LocalSource, find_source
from jointwise.tables import Table, encode, read_table
from jointwise.tables.variables import Schema, unused_name

# With more classes there is no second density: it evaluates each row once per class.
MOST_CLASSES = 100
# Most cells, the class's included, of a table that is kept as numbers for a second density: they take 200 MB, and a fit
# holds three to four copies.
MOST_CELLS = 25_000_000


class JointClassifier(ClassifierMixin, ComposedEstimator):
    r"""Classify by the largest P(class | row) under the joint density of features and class.

    The class is one more categorical column of the table, so gaps in the features, at fit or at prediction, need no
    treatment: they are integrated out.

    A product of columns is weak at linear correlation, so around a :class:`jointwise.JUPAD` a second joint density is
    used too, of the columns of numbers standardised within each class: centred, of unit variance and uncorrelated.

    .. math:: P(y \mid x) = (1 - s)\, P_1(y \mid x) + s\, P_2(y \mid x), \qquad
              P_2(y \mid x) \propto g(W_y^\top (x - \mu_y), y)\, |\det W_y|

    Held-out rows find the share s. Rows with a gap in those columns use the first density alone.

    Parameters
    ----------
    estimator : estimator with ``density_``, optional
        Learns the joint density of features and class; :class:`jointwise.JointEstimator` by default. It is cloned, not
        changed, and told in its parameter ``kinds`` that the class is categorical.
    standardise : bool
        Whether to use the second density. Without it, probabilities are exactly those of ``density_``, and a fit takes
        about half the time. Only where the estimator is a :class:`jointwise.JUPAD` that fits rows.
    random_state : int, RandomState or None
        Seed of the estimator's clone; None leaves the estimator's own.

    Attributes
    ----------
    classes_ : array
        The classes, sorted.
    estimator_ : estimator
        The fitted clone.
    density_ : JointDensity
        Joint density of the features and of the class, which is the last variable.
    target_name_ : str
        Name of the class in ``density_``.
    standardised_share_ : float
        The share s of the second density; zero where there is none.
    standardised_density_ : JointDensity or None
        The second density g: of the mixtures of columns, then of the other columns and of the class.
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
        standardise: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.standardise = standardise
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
        self._check_parameters()
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
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        self._ask_second(lambda schema: encode(joint, schema), weights)
        self.classes_ = np.array(self.class_model_.classes, dtype=target.dtype)
        return self

    def fit_blocks(self, blocks: Callable[[], Iterable[Any]], target: str) -> Self:
        """Learn from a table that comes in blocks and holds the class as one of its columns.

        The fit is the same, bit for bit, as that of the whole table. Tables of up to 25 million cells are read once
        more for the second density, which keeps their cells as numbers. Larger ones are classified by ``density_``
        alone, with a warning.

        Parameters
        ----------
        blocks : callable
            Returns the blocks, tables of any kind with the same columns, from the first on at each call.
        target : str
            The column that holds the class, in every row; each of its values is a class, also if they are numbers.

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
        self._check_parameters()
        inner = self._unfitted()

        def class_last() -> Iterator[Table]:
            return (_class_last(read_table(block), target) for block in blocks())

        first_block = next(class_last(), None)
        is_ordered = first_block is not None and first_block.read(-1).ordered
        _with_class(inner, target, "ordinal" if is_ordered else "categorical")
        self._keep_density(inner.fit_blocks(class_last), target)
        self._adopt_names(inner.n_features_in_ - 1)
        self.classes_ = np.array(self.class_model_.classes)
        first = self._first_fit()
        if first is not None and first.n_rows * inner.n_features_in_ > MOST_CELLS:
            warn_caller(
                f"The table has {first.n_rows:,.0f} rows of {inner.n_features_in_} columns, more than {MOST_CELLS:,} "
                "cells: classes are predicted by `density_` alone, without a second density. Fit fewer rows for one.",
                UserWarning,
            )
            return self
        self._ask_second(lambda schema: LocalSource(class_last).encoded(schema), None)
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
                f"The last variable must be the class, a categorical one after at least one feature; "
                f"{shown(target.name)} is {target.kind}, of {len(marginals.schema)} in all. Use `marginals.select` to "
                "put the class last."
            )
        self._keep_density(self._unfitted().fit_marginals(marginals), target.name)
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

    def _check_parameters(self) -> None:
        if not isinstance(self.standardise, bool):
            raise InputError(f"`standardise` must be True or False; got {shown(self.standardise)}.")

    def _notes(self) -> list[str]:
        share = self.standardised_share_
        told = f"classes: {share:.0%} by a second density, of columns standardised within classes"
        return [told] if share else []

    def _keep_density(self, fitted: Any, target: str) -> None:
        self._keep_fitted(fitted)
        if len(self.density_.names) == 1:
            raise InputError(f"The table has no column beside {shown(target)} to predict it from; keep some.")
        fit = getattr(fitted, "fit_", None)
        self._fit = without_unmet_classes(fit) if isinstance(fit, Fit) else None
        if self._fit is not None:
            self.density_ = self._fit.density
        self.target_name_ = target
        self._keep_classes(None)

    def _keep_classes(self, second: SecondDensity | None) -> None:
        """Keep what predicts classes: ``density_``, and perhaps a second density."""
        self.class_model_ = ClassModel(self.density_, self.target_name_, second)
        self.standardised_share_ = self.class_model_.share
        self.standardised_density_: JointDensity | None = second.density if second else None

    def _first_fit(self) -> Fit | None:
        """Return the fit of ``density_`` if a second density can be used beside it."""
        fit = self._fit
        if fit is None or fit.choice.beta is None or fit.was_interrupted:
            return None
        return fit if self.standardise and 1 < len(self.class_model_.classes) <= MOST_CLASSES else None

    def _ask_second(self, encoded: Callable[[Schema], FloatArray], weights: FloatArray | None) -> None:
        """Fit a density of standardised columns too, if that can help.

        Parameters
        ----------
        encoded : callable
            Returns the rows as numbers by a schema; shape (n, N).
        weights : array of shape (n,), optional
        """
        first = self._first_fit()
        if first is None:
            return
        schema, name = self.density_.schema, type(self).__name__
        watched, seed = bool(getattr(self.estimator_, "verbose", False)), self.estimator_.random_state
        tell(name, "a second density for the classes, of columns standardised within each", enabled=watched)
        try:
            rows = encoded(schema)
            with progress(name, first.options.max_iter, enabled=watched) as callback:
                bins = most_bins(schema, self.estimator_.n_bins)
                found = fit_second(first, rows, weights, bins, lambda: generator(seed), callback)
        except KeyboardInterrupt:
            if not first.options.keep_on_interrupt:
                raise
            warn_caller(
                "The fit was interrupted after that of `density_`, which alone predicts the classes. Fit again for the "
                "rest.",
                ConvergenceWarning,
            )
            return
        if found is not None:
            warn_unfinished(found[1])
            self._keep_classes(found[0])


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


def _class_last(table: Table, target: str) -> Table:
    """Return a table with the class as its last column, which no row may lack."""
    if target not in table.names:
        raise unknown_name("column", target, table.names)
    at = table.names.index(target)
    missing = int(np.isnan(table.read(at).values).sum())
    if missing:
        raise InputError(f"The class {shown(target)} is missing in {missing:,} rows; leave them out.")
    return table.select([*(n for n in range(len(table.names)) if n != at), at])
