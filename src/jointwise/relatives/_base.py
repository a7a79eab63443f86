"""The interface all relatives share: tables in, log-densities out, clear errors."""

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
DISCRETE_ADVICE = "Bin it first, or use CPD3 or JUPAD, which take continuous columns."
NUMBERS = frozenset({Kind.CONTINUOUS, Kind.INTEGER})
NUMBERS_ADVICE = "Code its categories as numbers if their order means something, or use JUPAD."
Seed = int | np.random.RandomState | None


class Relative(DensityMixin, TableEstimator):  # type: ignore[misc]  # scikit-learn's base classes are untyped
    """Density estimator that JUPAD builds on or is compared with.

    A subclass says which columns it takes (the class attributes), checks its parameters, fits encoded rows and
    computes their log-density.

    Attributes
    ----------
    schema_ : Schema
        What each column is, as found in fitting.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    """

    #: Kinds of columns the method takes.
    _kinds_taken: ClassVar[frozenset[Kind]] = frozenset(Kind)
    #: What to do with a column of another kind.
    _kind_advice: ClassVar[str] = ""
    #: Fewest columns; three if the method uses triples.
    _least_columns: ClassVar[int] = 1
    #: Whether rows with missing cells can be used.
    _takes_gaps: ClassVar[bool] = True
    #: Kinds by column name that override the detected ones; a parameter of some subclasses.
    kinds: Mapping[str, str] | None = None

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
        schema = profile.schema(self.kinds)
        self._check_columns(schema)
        rows = encode(table, schema)
        self._check_gaps(schema, rows)
        self._fit(rows, schema, profile)
        self.schema_ = schema
        return self

    def score_samples(self, X: Any) -> FloatArray:
        """Natural log-density of each row (log-mass if all columns are discrete); shape (n_samples,)."""
        return self._logpdf(self._rows(X))

    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002
        """Mean log-density of the rows."""
        return float(np.mean(self.score_samples(X)))

    # ---- what a subclass implements ------------------------------------------------------------------------

    @abstractmethod
    def _check_parameters(self) -> None:
        """Check every parameter, before any work is done."""

    @abstractmethod
    def _fit(self, rows: FloatArray, schema: Schema, profile: Profile) -> None:
        """Fit encoded rows (n, N), NaN in missing cells; `profile` makes axes."""

    @abstractmethod
    def _logpdf(self, rows: FloatArray) -> FloatArray:
        """Log-density of encoded rows (n, N); shape (n,)."""

    # ---- what all share ------------------------------------------------------------------------------------

    def _rows(self, X: Any) -> FloatArray:
        """Encoded rows of a table to score; an unseen category counts as missing, with a warning."""
        check_is_fitted(self, "schema_")
        rows = encode(self._read(X, reset=False), self.schema_, unseen="missing")
        self._check_gaps(self.schema_, rows)
        return rows

    def _keep_schema(self, schema: Schema) -> None:
        """Keep schema and names after a fit from marginals, where no table was read."""
        self.schema_ = schema
        self._record_names(schema)

    def _check_columns(self, schema: Schema) -> None:
        """Refuse columns of a kind the method does not take, and too few columns."""
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
        """Refuse missing cells if the method cannot use them."""
        if self._takes_gaps:
            return
        gaps = [schema.names[n] for n in np.flatnonzero(np.isnan(rows).any(axis=0))]
        if gaps:
            raise InputError(
                f"{type(self).__name__} cannot use missing values (NaN); found some in columns {listed(gaps)}. Drop "
                "those rows, fill them (JointImputer), or use JUPAD, which takes them."
            )

    def _check_n_components(self, n_components: int, most: int, reason: str) -> None:
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
    """A relative whose result is a :class:`~jointwise.JointDensity`; a subclass's `_fit` sets ``density_``.

    Attributes
    ----------
    density_ : JointDensity
        For conditionals, probabilities, samples and all other questions.
    """

    density_: JointDensity

    def sample(self, n_samples: int = 1, random_state: Seed = None) -> Any:
        """Draw rows from the fitted density, in the frame type that was fitted."""
        check_is_fitted(self, "schema_")
        return self.density_.sample(n_samples, rng=generator(random_state))

    def _logpdf(self, rows: FloatArray) -> FloatArray:
        return self.density_.mixture.logpdf(rows)
