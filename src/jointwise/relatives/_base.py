"""The face every relative has: tables in, log-densities out, and wrong use told in sentences."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from jointwise._checks import listed
from jointwise._typing import FloatArray
from jointwise.estimators._tables import TableEstimator, generator
from jointwise.exceptions import InputError, RankError
from jointwise.joint.density import JointDensity
from jointwise.marginals import Profile
from jointwise.tables import encode
from jointwise.tables.variables import Kind, Schema

DISCRETE = frozenset({Kind.INTEGER, Kind.CATEGORICAL})
NUMBERS = frozenset({Kind.CONTINUOUS, Kind.INTEGER})
NUMBERS_ADVICE = "Code its categories as numbers if their order means something, or use JUPAD."
SEEDS = int | np.random.RandomState | None


class Relative(DensityMixin, TableEstimator):  # type: ignore[misc]  # scikit-learn's base classes are untyped
    """Density estimator that JUPAD builds on or is compared with.

    A subclass says which columns it takes (the class attributes), checks its parameters, fits encoded rows and
    gives their log-density; the rest is here.

    Attributes
    ----------
    schema_ : Schema
        What each column is, as found in fitting.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    """

    #: Kinds of columns that the method is defined for.
    _kinds_taken: ClassVar[frozenset[Kind]] = frozenset(Kind)
    #: What to do with a column of another kind.
    _kind_advice: ClassVar[str] = ""
    #: Fewest columns: three where the method rests on triples.
    _least_columns: ClassVar[int] = 1
    #: Whether rows with missing cells can be used.
    _takes_gaps: ClassVar[bool] = True

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002  # scikit-learn passes y everywhere
        """Fit the density of the columns of ``X``.

        Parameters
        ----------
        X : frame, mapping or array of shape (n_samples, n_features)
        y : ignored
        """
        self._check_parameters()
        table = self._read(X, reset=True)
        profile = Profile.of(table)
        schema = profile.schema(self._given_kinds())
        self._check_columns(schema)
        rows = encode(table, schema)
        self._check_gaps(schema, rows)
        self._fit(rows, schema, profile)
        self.schema_ = schema
        return self

    def score_samples(self, X: Any) -> FloatArray:
        """Natural log-density of each row (log-mass where all columns are discrete); shape (n_samples,)."""
        return self._logpdf(self._rows(X))

    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002
        """Mean log-density of the rows."""
        return float(np.mean(self.score_samples(X)))

    # ---- what a subclass gives -----------------------------------------------------------------------------

    @abstractmethod
    def _check_parameters(self) -> None:
        """Check every parameter; done first, so that a wrong one is told before any work."""

    @abstractmethod
    def _fit(self, rows: FloatArray, schema: Schema, profile: Profile) -> None:
        """Fit encoded rows (n, N), NaN where a cell is missing; `profile` makes axes on request."""

    @abstractmethod
    def _logpdf(self, rows: FloatArray) -> FloatArray:
        """Log-density of encoded rows (n, N); shape (n,)."""

    def _given_kinds(self) -> Mapping[str, str] | None:
        """Kinds by name that override what is found; a subclass with such a parameter returns it."""
        return None

    # ---- what all share ------------------------------------------------------------------------------------

    def _rows(self, X: Any) -> FloatArray:
        """Encoded rows of a table at prediction; an unseen category counts as missing, with a warning."""
        check_is_fitted(self, "schema_")
        rows = encode(self._read(X, reset=False), self.schema_, unseen="missing")
        self._check_gaps(self.schema_, rows)
        return rows

    def _check_columns(self, schema: Schema) -> None:
        """Refuse columns of a kind that the method is not defined for, and too few columns."""
        name = type(self).__name__
        for variable in schema:
            if variable.kind not in self._kinds_taken:
                needed = " or ".join(sorted(self._kinds_taken))
                raise InputError(
                    f"{name} needs {needed} columns; column {variable.name!r} is {variable.kind}. {self._kind_advice}"
                )
        if len(schema) < self._least_columns:
            raise InputError(
                f"{name} needs at least {self._least_columns} columns; got a table with {len(schema)} feature(s). "
                "For fewer, use IndependenceDensity or JUPAD."
            )

    def _check_gaps(self, schema: Schema, rows: FloatArray) -> None:
        """Refuse missing cells where the method has no way with them."""
        if self._takes_gaps:
            return
        gaps = [schema.names[n] for n in np.flatnonzero(np.isnan(rows).any(axis=0))]
        if gaps:
            raise InputError(
                f"{type(self).__name__} has no way with missing values (NaN), and there are some in columns "
                f"{listed(gaps)}. Drop those rows, fill them (JointImputer), or use JUPAD, which takes them."
            )

    def _check_rank(self, n_components: int, most: int, reason: str) -> None:
        """Refuse more components than the method can hold."""
        if n_components > most:
            raise RankError(
                f"{type(self).__name__} can hold at most {most} components here: {reason}. Got n_components="
                f"{n_components}; lower it, or use a method that holds more, such as JUPAD."
            )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_gaps
        tags.input_tags.categorical = tags.input_tags.string = Kind.CATEGORICAL in self._kinds_taken
        return tags


class JointRelative(Relative):
    """A relative whose answer is a :class:`~jointwise.JointDensity`; a subclass's `_fit` sets ``density_``.

    Attributes
    ----------
    density_ : JointDensity
        For conditionals, probabilities, samples and all other questions.
    """

    density_: JointDensity

    def sample(self, n_samples: int = 1, random_state: SEEDS = None) -> Any:
        """Draw rows from the fitted density, in the frame type that was fitted."""
        check_is_fitted(self, "schema_")
        return self.density_.sample(n_samples, rng=generator(random_state))

    def _logpdf(self, rows: FloatArray) -> FloatArray:
        return self.density_.mixture.logpdf(rows)
