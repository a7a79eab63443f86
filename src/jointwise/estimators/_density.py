"""What estimators of a joint density share: reading tables from any place, scores, samples and a summary."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from jointwise._checks import check_choice
from jointwise._progress import Callback, progress, tell
from jointwise._typing import FloatArray
from jointwise.engines.blas import one_blas_thread
from jointwise.estimators._columns import ColumnOptions, Columns
from jointwise.estimators._summary import summary_text, warn_unfinished
from jointwise.estimators._tables import TableEstimator, generator, row_weights, warn_of_weights
from jointwise.exceptions import InputError, StorageError
from jointwise.fitting import Fit, Options
from jointwise.fitting.blocks import BlockFit, BlockOptions
from jointwise.fitting.checkpoint import check_checkpoint
from jointwise.fitting.learners import Learner
from jointwise.fitting.order import with_columns
from jointwise.fitting.stack import StackFit, StackOptions
from jointwise.fitting.trees import TreeFit, TreeOptions
from jointwise.marginals import Profile
from jointwise.rows.base import Rows
from jointwise.rows.coded import CodedRows
from jointwise.rows.sources import LocalSource, Source, find_source
from jointwise.tables import encode

OptionsT = TypeVar("OptionsT", Options, BlockOptions, TreeOptions, StackOptions)


class DensityEstimator(DensityMixin, TableEstimator, Generic[OptionsT]):
    """An estimator whose ``density_`` is the joint density of a table.

    A subclass has the parameters `max_iter`, `scratch_dir`, `checkpoint`, `random_state`, `verbose` and
    `on_interrupt`, and says how coded rows are fitted.
    """

    @abstractmethod
    def _fit_options(self) -> OptionsT:
        """Return the checked options of the fit."""

    @abstractmethod
    def _column_options(self, options: OptionsT) -> ColumnOptions:
        """Return what the parameters say about columns."""

    @abstractmethod
    def _fit_coded(
        self, rows: Rows, columns: Columns, options: OptionsT, callback: Callback | None
    ) -> Fit | BlockFit | TreeFit | StackFit:
        """Fit coded rows."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the joint density of the columns of ``X``.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features), or a table that is not in memory
            Numbers, categories, text, booleans or dates; gaps are welcome. A `polars.LazyFrame`, a
            `pyarrow.dataset.Dataset` or a DuckDB relation is read in blocks, twice. The rows of a Dask or Spark
            DataFrame stay where they are.
        y : ignored
        sample_weight : array of shape (n_samples,) or str, optional
            How often each row counts; for a table that is not in memory, the column that holds the weights.
        """
        options, about = self._options()
        source = find_source(X)
        if source is not None:
            return self._fit_source(_weighted(source, sample_weight), options, about)
        table = self._read(X, reset=True)
        weights = row_weights(sample_weight, table)
        columns = about.settle(Profile.of(table, weights))
        rows = CodedRows.of(table, columns.schema, columns.axes, weights)
        if about.missing == "auto":
            columns = columns.telling(rows)
            rows = with_columns(rows, np.array([rows.schema.index(name) for name in columns.schema.names]))
        self._fit_rows(rows, columns, options)
        return self

    def fit_blocks(self, blocks: Callable[[], Iterable[Any]]) -> Self:
        """Learn from a table that comes in blocks, such as a file that is larger than memory.

        The table is read twice, once for its profile and once for its codes, which take one or two bytes a cell. The
        fit is the same, bit for bit, as that of the whole table.

        Parameters
        ----------
        blocks : callable
            Returns the blocks, tables of any kind with the same columns, from the first on at each call.

        Examples
        --------
        >>> import numpy as np
        >>> from jointwise import JUPAD
        >>> X = np.random.default_rng(0).normal(size=(90, 2))
        >>> in_blocks = JUPAD(2, random_state=0).fit_blocks(lambda: np.array_split(X, 4))
        >>> bool(np.array_equal(in_blocks.score_samples(X), JUPAD(2, random_state=0).fit(X).score_samples(X)))
        True
        """
        return self._fit_source(LocalSource(blocks), *self._options())

    def score_samples(self, X: Any) -> FloatArray:
        """Log-density of each row; gaps are integrated out, with their probability if they are part of the model."""
        check_is_fitted(self, "density_")
        rows = encode(self._read(X, reset=False), self.density_.schema, unseen="missing")
        return self.density_.mixture.logpdf(rows)

    def score(self, X: Any, y: None = None) -> float:
        """Mean log-density of the rows."""
        return float(np.mean(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None) -> Any:
        """Draw rows from the fitted density, in the frame type that was fitted."""
        check_is_fitted(self, "density_")
        return self.density_.sample(n_samples, rng=generator(random_state))

    def summary(self) -> str:
        """Return text on what was fitted and how it was chosen, then one line per column.

        Examples
        --------
        >>> from jointwise import JUPAD
        >>> text = JUPAD(random_state=0).fit({"a": [1.5, 2.5, 4.0] * 20, "b": ["x", "x", "y"] * 20}).summary()
        >>> text.splitlines()[:2]
        ['JUPAD: joint density of 2 columns', 'rows: 60']
        """
        check_is_fitted(self, "density_")
        return summary_text(type(self).__name__, self.fit_)

    def _named_options(self, kind: type[OptionsT]) -> OptionsT:
        """Return options of a kind, filled with the parameters of the same names."""
        named = {field.name: getattr(self, field.name) for field in fields(kind) if hasattr(self, field.name)}
        return kind(**named, keep_on_interrupt=self.on_interrupt == "keep")

    def _options(self) -> tuple[OptionsT, ColumnOptions]:
        """Check every parameter, before any work is done."""
        check_choice("on_interrupt", self.on_interrupt, ("raise", "keep"))
        if self.scratch_dir is not None and not Path(self.scratch_dir).is_dir():
            raise StorageError(
                f"`scratch_dir` must be a folder or None; there is none at {str(self.scratch_dir)!r}. "
                "Give scratch_dir a folder that exists and can be written."
            )
        options = self._fit_options()
        if self._keeps_checkpoint() and self.checkpoint is not None:
            check_checkpoint(self.checkpoint)
        return options, replace(self._column_options(options), missing=getattr(self, "missing", "ignorable"))

    def _keeps_checkpoint(self) -> bool:
        return True

    def _fit_source(self, source: Source, options: OptionsT, about: ColumnOptions) -> Self:
        self._tell("reading the table, for its profile")
        profile = source.profile()
        columns = about.settle(profile)
        folder = None if self.scratch_dir is None else Path(self.scratch_dir)
        if about.missing == "auto" and columns.schema.gaps:
            self._tell("reading it again, for its gaps")
            with source.coded(columns.schema, columns.axes, folder) as rows:
                columns = columns.telling(rows)
        self._tell("reading it again, for its codes")
        with source.coded(columns.schema, columns.axes, folder) as rows:
            self._tell(f"{len(rows):,} rows of {len(columns.axes)} columns are coded")
            self._fit_rows(rows, columns, options)
        self._record_names(profile)
        return self

    def _fit_rows(self, rows: Rows, columns: Columns, options: OptionsT) -> None:
        if self.verbose:
            from jointwise.engines.compiled import is_compiled  # loads numba, which the fit does next

            if not is_compiled():
                self._tell("the first fit on this machine compiles its loops, which takes up to half a minute")
        warn_of_weights(rows)
        with progress(type(self).__name__, self.max_iter, enabled=self.verbose) as callback, one_blas_thread():
            found = self._fit_coded(rows, columns, options, callback)
        self.left_out_ = columns.left_out
        self._keep(found)

    def _keep(self, fit: Fit | BlockFit | TreeFit | StackFit) -> None:
        """Keep what a fit found, and warn where it stopped short."""
        self.fit_, self.density_, self.stages_ = fit, fit.density, fit.stages
        self.n_iter_ = max([1, *(stage.n_steps for stage in fit.final)])
        self.converged_ = fit.unfinished is None
        warn_unfinished(fit)

    def _tell(self, what: str) -> None:
        tell(type(self).__name__, what, enabled=self.verbose)


class ExpertEstimator(DensityEstimator[OptionsT]):
    """An estimator that may be one of the experts of a stack."""

    @abstractmethod
    def learner(self, name: str, columns: Columns, *, alone: bool = False) -> Learner:
        """Return how a stack learns this estimator from rows with fine axes, perhaps as its only expert."""


def _weighted(source: Source, sample_weight: Any) -> Source:
    if sample_weight is None:
        return source
    if not isinstance(sample_weight, str):
        raise InputError(
            "sample_weight of a table that is read in blocks must be the name of one of its columns; got "
            f"{type(sample_weight).__name__}. Add the weights to the table as a column."
        )
    return source.with_weights(sample_weight)
