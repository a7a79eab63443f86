"""JUPADClassifier: the class as one more column of the joint."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from jointwise._checks import shown, unknown_name
from jointwise._typing import AnyArray, FloatArray
from jointwise.axes import Axis, DiscreteAxis, encode_rows
from jointwise.dictionary import Dictionary
from jointwise.estimators._base import JointEstimator, in_order, row_weights
from jointwise.estimators._opinions import Plan, held_out_share
from jointwise.estimators._tables import generator
from jointwise.exceptions import InputError
from jointwise.fitting.checkpoint import Checkpoint
from jointwise.fitting.choice import Choice
from jointwise.joint.classes import ClassModel, SecondDensity
from jointwise.joint.density import JointDensity
from jointwise.joint.standardisation import ClassStandardisation
from jointwise.marginals import PairwiseMarginals, Profile
from jointwise.marginals.column import ColumnProfile
from jointwise.rows.base import Rows
from jointwise.rows.coded import CodedRows
from jointwise.rows.sources import LocalSource, find_source
from jointwise.solvers import Status
from jointwise.tables import encode
from jointwise.tables.variables import Kind, Schema, Variable

# Of more classes no second density is asked: it weighs each row by each of them.
MOST_CLASSES = 100
# Cells, the class's included, up to which a table that is met in blocks is kept as numbers for a second density: they
# take 200 MB, and a fit holds three to four copies. Of a larger table only codes are kept, one or two bytes a cell.
MOST_CELLS = 25_000_000


class JUPADClassifier(ClassifierMixin, JointEstimator):
    r"""Classify by the largest P(class | row) under the joint density of features and class.

    The class is one more categorical column of the table, so gaps in the features, at fit or at prediction, need no
    treatment: they are integrated out.

    A product of columns pays for linear correlation, so by default a second joint density is asked too, of the columns
    of numbers as each class sees them: centred, of unit variance and uncorrelated.

    .. math:: P(y \mid x) = (1 - s)\, P_1(y \mid x) + s\, P_2(y \mid x), \qquad
              P_2(y \mid x) \propto g(W_y^\top (x - \mu_y), y)\, |\det W_y|

    Held-out rows find the share s; rows with a gap in those columns are left to the first.

    Parameters
    ----------
    standardise : bool
        Whether to ask the second density. Without it, probabilities are exactly those of ``density_``, and a fit takes
        about half the time. Not used for pairs.
    **parameters
        All others are those of :class:`jointwise.JUPAD`. A `checkpoint` is of the fit of ``density_``.

    Attributes
    ----------
    classes_ : array
        The classes, sorted.
    density_ : JointDensity
        Joint density of the features and of the class, which is the last variable.
    target_name_ : str
        Name of the class in ``density_``.
    standardised_share_ : float
        The share s of the second density, zero where it is not asked.
    standardised_density_ : JointDensity or None
        The second density g: of the mixtures of columns, then of the other columns and of the class.
    class_model_ : ClassModel
        All that tells classes, with ``save``; :meth:`jointwise.ClassModel.load` reads it back, and
        :func:`jointwise.load` reads ``density_`` of the same file.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from jointwise import JUPADClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> bool(JUPADClassifier(n_components=3, random_state=0).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9)
    True
    """

    def __init__(
        self,
        n_components: int | Literal["auto"] = "auto",
        *,
        standardise: bool = True,
        polish: Literal["likelihood"] | None = "likelihood",
        beta: float | Literal["auto"] = "auto",
        n_models: int | Literal["auto"] = "auto",
        loss: str = "kl",
        dictionaries: Literal["auto"] | Mapping[str, Dictionary] = "auto",
        learn_dictionary: bool | Literal["auto"] = "auto",
        kinds: Mapping[str, str] | None = None,
        supports: Mapping[str, tuple[Any, Any] | None] | None = None,
        steps: Mapping[str, float] | None = None,
        drop: Sequence[str] = (),
        keep: Sequence[str] = (),
        n_bins: int = 128,
        learning_rates: tuple[float, float, float] | None = None,
        n_init: int = 5,
        max_iter: int = 500,
        tol: float = 1e-4,
        device: Literal["cpu", "cuda"] = "cpu",
        scratch_dir: str | Path | None = None,
        checkpoint: str | Path | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        on_interrupt: Literal["raise", "keep"] = "raise",
    ) -> None:
        super().__init__(
            n_components,
            polish=polish,
            beta=beta,
            n_models=n_models,
            loss=loss,
            dictionaries=dictionaries,
            learn_dictionary=learn_dictionary,
            kinds=kinds,
            supports=supports,
            steps=steps,
            drop=drop,
            keep=keep,
            n_bins=n_bins,
            learning_rates=learning_rates,
            n_init=n_init,
            max_iter=max_iter,
            tol=tol,
            device=device,
            scratch_dir=scratch_dir,
            checkpoint=checkpoint,
            random_state=random_state,
            verbose=verbose,
            on_interrupt=on_interrupt,
        )
        self.standardise = standardise

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

        schema, axes = self._axes(Profile.of(table, weights), self.kinds)
        self.target_name_ = _unused_name(getattr(y, "name", None), schema.names)
        labels = Variable(
            self.target_name_, Kind.CATEGORICAL, categories=_plain(self.classes_), dtype=_dtype(self.classes_)
        )
        rows = np.column_stack([encode(table, schema), codes])
        self._fit_classes(rows, Schema((*schema, labels), schema.container), axes, weights)
        return self

    def fit_blocks(self, blocks: Callable[[], Iterable[Any]], target: str) -> Self:
        """Learn from a table that is met in blocks and holds the class as one of its columns.

        It is read twice, once for its profile and once for its cells. Up to 25 million cells are kept as numbers, and
        the fit is the same, bit for bit, as that of the whole table. Of a larger table only codes are kept, and classes
        are told by ``density_`` alone, with a warning.

        Parameters
        ----------
        blocks : callable
            Returns the blocks, tables of any kind with the same columns, from the first on at each call.
        target : str
            The column that holds the class, in every row. Numbers are classes too, each value one.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from jointwise import JUPADClassifier
        >>> X, y = load_wine(return_X_y=True)
        >>> parts = [{"acid": X[n, 1], "hue": X[n, 10], "kind": y[n]} for n in np.array_split(np.arange(len(y)), 3)]
        >>> model = JUPADClassifier(2, random_state=0).fit_blocks(lambda: parts, "kind")
        >>> model.classes_.tolist(), model.feature_names_in_.tolist()
        ([0, 1, 2], ['acid', 'hue'])
        """
        self._check_parameters()
        source = LocalSource(blocks)
        self._tell("reading the table, for its profile")
        profile = source.profile()
        if target not in profile.names:
            raise unknown_name("column", target, profile.names)
        column = profile.columns[profile.names.index(target)]
        features = profile.without([target])
        if not features.columns:
            raise InputError(f"The table has no column beside {shown(target)} to tell it by; keep some.")
        kinds = dict(self.kinds or {})
        labels = _labels(column, kinds.pop(target, None))
        schema, axes = self._axes(features, kinds)
        self.classes_, self.target_name_ = np.array(labels.categories), target
        joint = Schema((*schema, labels), schema.container)
        self._tell("reading it again, for its cells")
        if profile.n_rows * len(profile.names) <= MOST_CELLS:
            self._fit_classes(source.encoded(joint), joint, axes, None)
        else:
            folder = None if self.scratch_dir is None else Path(self.scratch_dir)
            with source.coded(joint, (*axes, _class_axis(labels)), folder) as coded:
                self._fit_joint(coded)
            warnings.warn(
                f"The table has {profile.n_rows:,.0f} rows of {len(profile.names)} columns, more than {MOST_CELLS:,} "
                "cells: no second density is asked, and classes are told by `density_` alone. Fit fewer rows for it.",
                stacklevel=2,
            )
        self._record_names(features)
        return self

    def _fit_joint(self, coded: Rows) -> Choice | None:
        choice = self._fit_rows(coded)
        self._keep_classes(None)
        return choice

    def _fit_classes(self, rows: FloatArray, joint: Schema, axes: tuple[Axis, ...], weights: FloatArray | None) -> None:
        """Fit ``density_``, and a second density where that pays.

        Parameters
        ----------
        rows : array of shape (n, N)
            Encoded, the class last.
        joint : Schema of N variables
        axes : tuple of N - 1 Axis
            Of the features.
        weights : array of shape (n,), optional
        """
        axes = (*axes, _class_axis(joint.variables[-1]))
        coded = CodedRows(joint, axes, encode_rows(rows, axes), weights)
        choice = self._fit_joint(coded)
        interrupted = any(stage.status is Status.INTERRUPTED for stage in self._final)
        if self.standardise and choice is not None and 1 < len(self.classes_) <= MOST_CLASSES and not interrupted:
            try:
                self._ask_second(rows, coded, choice)
            except KeyboardInterrupt:
                if self.on_interrupt != "keep":
                    raise
                warnings.warn(
                    "The fit was interrupted after that of `density_`: classes are told by it alone. Fit again for the "
                    "rest.",
                    ConvergenceWarning,
                    stacklevel=3,
                )

    def _check_parameters(self) -> None:
        if not isinstance(self.standardise, bool):
            raise InputError(f"`standardise` must be True or False; got {shown(self.standardise)}.")
        super()._check_parameters()

    def _keep_classes(self, second: SecondDensity | None) -> None:
        """Keep what tells classes: ``density_``, and perhaps a second density."""
        self.class_model_ = ClassModel(self.density_, self.target_name_, second)
        self.standardised_share_ = self.class_model_.share
        self.standardised_density_: JointDensity | None = second.density if second else None

    def _ask_second(self, rows: FloatArray, coded: CodedRows, choice: Choice) -> None:
        """Fit a density of standardised columns too, if held-out rows gain by it.

        Parameters
        ----------
        rows : array of shape (n, N)
            Encoded, the class last.
        coded : CodedRows
            The same as ``density_`` was fitted to.
        choice : Choice
            What was fitted there.
        """
        numbers = [n for n, v in enumerate(coded.schema) if v.kind is not Kind.CATEGORICAL]
        classes, n_classes = rows[:, -1].astype(np.int64), len(self.classes_)
        weights = np.ones(len(rows)) if coded.weights is None else coded.weights
        found = ClassStandardisation.of(rows, np.array(numbers, dtype=np.int64), classes, weights, n_classes)
        if found is None:
            return
        self._tell("a second density, of columns as their class sees them, to tell classes by")
        second = self._standardised_rows(found, rows, coded)
        inner = self._for(second.schema)
        rng = generator(self.random_state)
        chosen = inner._choose(in_order(second.on(self.device)), rng, Checkpoint())  # noqa: SLF001 -- of its own class
        plans = (Plan(coded.schema, coded.axes, choice), Plan(second.schema, second.axes, chosen))
        share = held_out_share(rows, weights, plans, found.columns, rng)
        if share > 0:
            inner._fit_rows(second, chosen, checked=False)  # noqa: SLF001
            self._keep_classes(SecondDensity(found, inner.density_, share))
            self._notes = replace(self._notes, second_share=share)

    def _standardised_rows(self, found: ClassStandardisation, rows: FloatArray, coded: CodedRows) -> CodedRows:
        """Return the rows as their classes see them: standardised columns, then those that are left as they are."""
        seen = found.apply(rows, rows[:, -1].astype(np.int64))
        profile = Profile.of(seen[:, : len(found.columns)], coded.weights)
        # mixtures of columns have neither the columns' bounds nor their steps
        by_name = profile.names
        mixed = profile.schema(
            dict.fromkeys(by_name, "continuous"), supports=dict.fromkeys(by_name), steps=dict.fromkeys(by_name, 0.0)
        )
        others = np.delete(np.arange(len(coded.axes)), found.columns)
        kept = tuple(coded.schema.variables[n] for n in others)
        taken = tuple(v.name for v in kept)
        renamed = tuple(replace(v, name=_unused_name(f"mix {k + 1}", taken)) for k, v in enumerate(mixed))
        axes = profile.axes(mixed, self._most_bins(coded.schema)) + tuple(coded.axes[n] for n in others)
        schema = Schema(renamed + kept, coded.schema.container)
        return CodedRows(schema, axes, encode_rows(seen, axes), coded.weights)

    def _for(self, schema: Schema) -> Self:
        """Return an estimator with the same parameters for other columns."""
        given = {name: d for name, d in self._given_dictionaries().items() if name in schema.names}
        other = copy(self)
        other.dictionaries, other.checkpoint = given, None
        return other

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
        super().fit_marginals(marginals)
        self.classes_ = np.array(target.categories)
        self.target_name_ = target.name
        self._keep_classes(None)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """P(class | row), columns in the order of ``classes_``; shape (n_samples, n_classes)."""
        rows = self._rows(X)
        return self.class_model_.probabilities(rows)

    def predict(self, X: Any) -> AnyArray:
        """Most probable class of each row."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[best])

    def _feature_schema(self) -> Schema:
        return self.density_.schema.select(self.density_.names[:-1])


def _labels(column: ColumnProfile, kind: str | None) -> Variable:
    """Return the class that a column holds: its categories are those that occur, in their order if they have one."""
    variable = column.variable(kind or (None if column.counts else "categorical"))
    if variable.categories is None:
        raise InputError(f"The class must be categorical or ordinal; kinds[{shown(column.name)}] is {shown(kind)}.")
    if column.n_missing:
        raise InputError(f"The class {shown(column.name)} is missing in {column.n_missing:,.0f} rows; leave them out.")
    met = tuple(label for label in variable.categories if not column.counts or label in column.counts)
    return replace(variable, categories=met, observed=(0.0, len(met) - 1.0))


def _class_axis(labels: Variable) -> Axis:
    return DiscreteAxis(np.arange(len(labels.categories or ()), dtype=float))


def _unused_name(wanted: Any, taken: tuple[str, ...]) -> str:
    name = str(wanted) if wanted is not None else "target"
    while name in taken:
        name += "_"
    return name


def _plain(classes: AnyArray) -> tuple[Any, ...]:
    return tuple(classes.tolist())


def _dtype(classes: AnyArray) -> str:
    return {bool: "bool", int: "int64", float: "float64"}.get(type(classes[:1].tolist()[0]), "string")
