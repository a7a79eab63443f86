"""What the three estimators share: their parameters, reading tables, and the fit from marginals."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from jointwise._checks import (
    cause,
    check_choice,
    check_integer,
    check_names,
    check_weights,
    listed,
    shown,
    unknown_name,
)
from jointwise._progress import progress, tell
from jointwise._typing import FloatArray
from jointwise.axes import Axis
from jointwise.dictionary import Dictionary
from jointwise.engines.cuda import check_cuda
from jointwise.estimators._summary import FitNotes, summary_text
from jointwise.estimators._tables import TableEstimator, generator
from jointwise.exceptions import InputError, LeftOutWarning, MisfitWarning, StorageError
from jointwise.fitting.check import held_out_check, repeated_values
from jointwise.fitting.checkpoint import Checkpoint, check_checkpoint, parameter_marks, table_marks
from jointwise.fitting.choice import (
    RANKS,
    STRENGTHS,
    Choice,
    choose_dictionaries,
    choose_model,
    scores_from_dict,
    scores_to_dict,
)
from jointwise.fitting.pairs import PairwiseSettings, fit_pairwise
from jointwise.fitting.result import Fit
from jointwise.fitting.rows import LikelihoodSettings, fit_likelihood
from jointwise.joint import Check
from jointwise.joint.density import MOST_VERDICT
from jointwise.joint.tails import lighter_tails
from jointwise.marginals import PairwiseMarginals, Profile
from jointwise.rows.base import Rows
from jointwise.rows.coded import CodedRows
from jointwise.rows.sources import Source, find_source
from jointwise.solvers import Status
from jointwise.tables import Table, encode
from jointwise.tables.variables import EVERYWHERE, Kind, Schema, Variable

# The end bins, and one in between.
LEAST_BINS = 3
# Pairs alone have no prior to make a generous number harmless.
DEFAULT_PAIRWISE_RANK = 10
# Models that are averaged, by the most rows: the fewer the rows, the more there is to gain, and the less it costs.
MODELS = ((10_000, 5), (50_000, 3))
# Up to here rows are put in order first (a second for a million), so that a fit does not depend on their order.
CANONICAL_ROWS = 1_000_000
# Parameters on which a fit from rows depends, once its rows are coded.
MARKING = (
    "n_components", "beta", "n_models", "dictionaries", "learn_dictionary", "n_init", "max_iter", "tol", "device",
    "random_state",
)  # fmt: skip
# Pair counts grow with the square of all columns' bins: so many take half a gigabyte.
MOST_BINS_OF_ALL = 8192


def row_weights(sample_weight: Any, table: Table) -> FloatArray | None:
    """Checked weights of the rows, not all zero, or None."""
    weights = check_weights(sample_weight, table.n_rows)
    if weights is not None and not weights.any():
        raise InputError("Every sample_weight is zero, so there is nothing to learn from; give some rows a weight.")
    return weights


def in_order(rows: Rows) -> Rows:
    """Rows in canonical order, unless they are too many to sort."""
    return rows.canonical() if len(rows) <= CANONICAL_ROWS else rows


def _weighted(source: Source, sample_weight: Any) -> Source:
    if sample_weight is None:
        return source
    if not isinstance(sample_weight, str):
        raise InputError(
            "sample_weight of a table that is read in blocks must be the name of one of its columns; got "
            f"{type(sample_weight).__name__}. Add the weights to the table as a column."
        )
    return source.with_weights(sample_weight)


class JointEstimator(TableEstimator):
    """Parameters and fit of every estimator that rests on a joint density; see :class:`jointwise.JUPAD`."""

    def __init__(
        self,
        n_components: int | Literal["auto"] = "auto",
        *,
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
        self.n_components = n_components
        self.polish = polish
        self.beta = beta
        self.n_models = n_models
        self.loss = loss
        self.dictionaries = dictionaries
        self.learn_dictionary = learn_dictionary
        self.kinds = kinds
        self.supports = supports
        self.steps = steps
        self.drop = drop
        self.keep = keep
        self.n_bins = n_bins
        self.learning_rates = learning_rates
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.device = device
        self.scratch_dir = scratch_dir
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose
        self.on_interrupt = on_interrupt

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the joint density of the columns of ``X``.

        Parameters
        ----------
        X : frame or array of shape (n_samples, n_features), or a table that is not in memory
            Numbers, categories, text, booleans or dates; gaps are welcome. A `polars.LazyFrame`, a
            `pyarrow.dataset.Dataset` or a DuckDB relation is read in blocks, twice; of a Dask or Spark DataFrame the
            rows stay where they are.
        y : ignored
        sample_weight : array of shape (n_samples,) or str, optional
            How often each row counts; of a table that is not in memory, the name of the column that tells.
        """
        self._check_parameters()
        source = find_source(X)
        if source is not None:
            return self._fit_source(_weighted(source, sample_weight))
        table = self._read(X, reset=True)
        weights = row_weights(sample_weight, table)
        schema, axes = self._axes(Profile.of(table, weights), self.kinds)
        self._fit_rows(CodedRows.of(table, schema, axes, weights))
        return self

    def _fit_source(self, source: Source) -> Self:
        self._tell("reading the table, for its profile")
        profile = source.profile()
        schema, axes = self._axes(profile, self.kinds)
        folder = None if self.scratch_dir is None else Path(self.scratch_dir)
        self._tell("reading it again, for its codes")
        with source.coded(schema, axes, folder) as rows:
            self._tell(f"{len(rows):,} rows of {len(axes)} columns are coded")
            self._fit_rows(rows)
        self._record_names(profile)
        return self

    def fit_marginals(self, marginals: PairwiseMarginals) -> Self:
        """Fit from pair counts alone; no row is needed.

        Parameters
        ----------
        marginals : PairwiseMarginals
            Counts of every pair of columns, gathered anywhere and added up.
        """
        self._fit_marginals(marginals)
        self._record_names(self._feature_schema())
        return self

    def summary(self) -> str:
        """Text that tells what was fitted and how it was chosen, then one line per column.

        Examples
        --------
        >>> from jointwise import JUPAD
        >>> text = JUPAD(random_state=0).fit({"a": [1.5, 2.5, 4.0] * 20, "b": ["x", "x", "y"] * 20}).summary()
        >>> text.splitlines()[:2]
        ['JUPAD: joint density of 2 columns', 'rows: 60']
        """
        check_is_fitted(self, "density_")
        return summary_text(type(self).__name__, self.density_, self._notes, self._final)

    def _check_parameters(self) -> None:
        """Check every parameter; done first, so that a wrong one is told before any work."""
        if self.polish is not None:
            check_choice("polish", self.polish, ("likelihood",))
        check_integer("n_bins", self.n_bins, LEAST_BINS)
        check_choice("on_interrupt", self.on_interrupt, ("raise", "keep"))
        for argument in ("drop", "keep"):
            check_names(argument, getattr(self, argument))
        if self.scratch_dir is not None and not Path(self.scratch_dir).is_dir():
            raise StorageError(
                f"`scratch_dir` must be a folder or None; there is none at {str(self.scratch_dir)!r}. "
                "Give scratch_dir a folder that exists and can be written."
            )
        check_choice("device", self.device, ("cpu", "cuda"))
        if self.device == "cuda":
            check_cuda()
        if self.n_models != "auto":
            check_integer("n_models", self.n_models, 1)
        if not isinstance(self.learn_dictionary, bool) and self.learn_dictionary != "auto":
            raise InputError(f'`learn_dictionary` must be True, False or "auto"; got {shown(self.learn_dictionary)}.')
        self._given_dictionaries()
        if self.polish and self.checkpoint is not None:
            check_checkpoint(self.checkpoint)
        self._likelihood_settings() if self.polish else self._pairwise_settings()

    def _pairwise_settings(self) -> PairwiseSettings:
        n_components = DEFAULT_PAIRWISE_RANK if self.n_components == "auto" else self.n_components
        return PairwiseSettings(
            n_components, self.loss, self.learning_rates, self.n_init, self.max_iter, self.tol, self._keeps()
        )

    def _likelihood_settings(self, choice: Choice | None = None) -> LikelihoodSettings:
        """Return the settings of the fit, with what was chosen in place of "auto"."""
        defaults = LikelihoodSettings()
        n_components, beta = (choice.n_components, choice.beta) if choice else (self.n_components, self.beta)
        return LikelihoodSettings(
            defaults.n_components if n_components == "auto" else n_components,
            defaults.beta if beta == "auto" else beta,
            self.n_init,
            self.max_iter,
            self.tol,
            choice.learn_dictionary if choice else False,
            self._keeps(),
        )

    def _n_models(self, rows: Rows) -> int:
        if self.n_models != "auto":
            return self.n_models
        if self.n_components != "auto":  # who asks for three components expects three
            return 1
        return next((n_models for most, n_models in MODELS if len(rows) <= most), 1)

    def _tell(self, what: str) -> None:
        tell(type(self).__name__, what, enabled=self.verbose)

    def _keeps(self) -> bool:
        return self.on_interrupt == "keep"

    def _fit_rows(self, rows: Rows, choice: Choice | None = None, *, checked: bool = True) -> Choice | None:
        """Fit from coded rows, by likelihood or from their pair counts alone; return what was chosen for likelihood."""
        as_given = rows = rows.on(self.device)
        if self.polish is None:
            self._fit_marginals(rows.pairs())
            return None
        rows = in_order(rows)
        rng = generator(self.random_state)
        checkpoint = self._open_checkpoint(rows, rng)
        try:
            with progress(type(self).__name__, self.max_iter, enabled=self.verbose) as callback:
                choice = choice or self._choose(rows, rng, checkpoint)
                settings = self._likelihood_settings(choice)
                fit = fit_likelihood(rows, choice.models, settings, rng, callback, checkpoint)
                interrupted = any(stage.status is Status.INTERRUPTED for stage in fit.final)
                self.check_ = self._check(as_given, choice, settings) if checked and not interrupted else None
        except KeyboardInterrupt:
            checkpoint.flush()
            raise
        if interrupted:
            checkpoint.flush()
        else:
            checkpoint.remove()
        self.beta_ = choice.beta
        self._notes = FitNotes(
            "likelihood of the rows",
            rows.n_rows,
            choice.n_components,
            n_models=len(fit.final) or len(choice.models),  # fewer where the fit was interrupted
            gain=fit.gain,
            held_out=choice.held_out,
            independence=choice.independence,
            learned=choice.learn_dictionary,
            chosen=tuple(name for name in ("n_components", "beta") if getattr(self, name) == "auto"),
            beta=choice.beta,
            verdict=self.check_.verdict[:MOST_VERDICT] if self.check_ else "",
        )
        self._keep(replace(fit, density=replace(fit.density, verdict=self._notes.verdict)))
        return choice

    def _check(self, rows: Rows, choice: Choice, settings: LikelihoodSettings) -> Check | None:
        """Compare a model without some rows with these; whatever goes wrong, the fit itself stands."""
        try:
            given = self._given_dictionaries()
            return held_out_check(rows, choice, settings.starts_of_each(1), self._repeated, given)
        except KeyboardInterrupt:
            if not self._keeps():
                raise
        except Exception as error:  # noqa: BLE001 -- a fit is worth more than its check
            warnings.warn(
                f"The check of the fit failed ({type(error).__name__}: {cause(error)}); the density itself stands. Ask "
                "`density_.check` with rows, and please report this.",
                RuntimeWarning,
                stacklevel=4,
            )
        return None

    def _open_checkpoint(self, rows: Rows, rng: np.random.Generator) -> Checkpoint:
        if self.checkpoint is None:
            return Checkpoint()
        parameters = parameter_marks({name: getattr(self, name) for name in MARKING})
        return Checkpoint(Path(self.checkpoint), {"parameters": parameters, "table": table_marks(rows)}, rng)

    def _choose(self, rows: Rows, rng: np.random.Generator, checkpoint: Checkpoint) -> Choice:
        """Return what to fit: what the checkpoint holds, else what held-out rows prefer."""
        n_models = self._n_models(rows)
        ranks = RANKS if self.n_components == "auto" else (self.n_components,)
        strengths = STRENGTHS if self.beta == "auto" else (self.beta,)
        kept = checkpoint.find(
            "choice", lambda data: Choice.from_dict(data, rows, n_models, ranks=ranks, strengths=strengths)
        )
        if kept is not None:
            return kept
        choice = choose_model(
            rows,
            self._given_dictionaries(),
            rng,
            n_models=n_models,
            ranks=ranks,
            strengths=strengths,
            learn_dictionary=self.learn_dictionary,
            scores=checkpoint.find("search", scores_from_dict),
            on_score=lambda scores: checkpoint.keep("search", scores_to_dict(scores), draws_again=True),
        )
        checkpoint.keep("choice", choice.to_dict())
        checkpoint.flush()
        return choice

    def _fit_marginals(self, marginals: PairwiseMarginals) -> None:
        settings, rng = self._pairwise_settings(), generator(self.random_state)
        with progress(type(self).__name__, self.max_iter, enabled=self.verbose) as callback:
            dictionaries = choose_dictionaries(marginals, self._given_dictionaries(), rng)
            fit = fit_pairwise(marginals, dictionaries, settings, rng, callback)
        if hasattr(self, "beta_"):  # of an earlier fit from rows
            del self.beta_
        self.check_ = None
        method = {"kl": "likelihood of pairs of columns", "frobenius": "squared error of pairs of columns"}
        self._notes = FitNotes(method[settings.loss], marginals.n_rows, settings.n_components)
        self._keep(fit)

    def _keep(self, fit: Fit) -> None:
        """Keep what a fit found, and warn where it stopped short."""
        fitted = fit.density
        mixture = lighter_tails(fitted.mixture, fitted.schema, self._notes.n_rows, self._given_dictionaries())
        self.density_ = replace(fitted, mixture=mixture)
        self.stages_ = fit.stages
        self._final = fit.final
        self.n_iter_ = max([1, *(stage.n_steps for stage in fit.final)])
        unfinished = [stage for stage in fit.final if not stage.converged]
        self.converged_ = not unfinished
        if unfinished:
            remedy = (
                "The density is the one reached by then; fit again for the rest."
                if unfinished[-1].status is Status.INTERRUPTED
                else f"Raise max_iter (now {self.max_iter}) or tol (now {self.tol}), or lower n_components (now "
                f"{self.n_components})."
            )
            warnings.warn(f"{unfinished[-1].message} {remedy}", ConvergenceWarning, stacklevel=4)
        if self.check_ is not None and self.check_.is_far:
            warnings.warn(f"{self.check_.verdict} See `check_` for more.", MisfitWarning, stacklevel=4)

    def _axes(self, profile: Profile, kinds: Mapping[str, str] | None) -> tuple[Schema, tuple[Axis, ...]]:
        """Return the schema and the axes of a table; point masses in a given dictionary settle a variable's spikes."""
        self.left_out_ = self._left_out(profile)
        profile = profile.without(self.left_out_)
        self._repeated = repeated_values(profile)
        schema = profile.schema(kinds, supports=self.supports, steps=self.steps)
        schema = Schema(tuple(self._with_given_atoms(v) for v in schema), schema.container)
        return schema, profile.axes(schema, self._most_bins(schema))

    def _left_out(self, profile: Profile) -> tuple[str, ...]:
        """Return the columns to be left out: those to be dropped, and those that only name the rows, with a warning."""
        for argument in ("drop", "keep"):
            for name in getattr(self, argument):
                if name not in profile.names:
                    raise unknown_name(f"column in `{argument}`:", name, profile.names)
        both = [name for name in self.drop if name in self.keep]
        if both:
            raise InputError(f"`drop` and `keep` must not share columns; both name {listed(both)}.")
        if len(set(self.drop)) == len(profile.names):
            raise InputError("`drop` names every column, so there is nothing to learn from; keep at least one.")
        asked = {
            *self.keep,
            *(self.kinds or {}),
            *self._given_dictionaries(),
            *(self.supports or {}),
            *(self.steps or {}),
        }
        named = [name for name in profile.without(self.drop).identifiers() if name not in asked]
        if named:
            warnings.warn(
                f"Left out, because they name the rows and tell nothing of other columns: {listed(named)}. Pass "
                f"keep=[{listed(named)}] to have them in, or the same as drop= to leave them out without this warning.",
                LeftOutWarning,
                stacklevel=4,
            )
        return tuple(name for name in profile.names if name in self.drop or name in named)

    def _with_given_atoms(self, variable: Variable) -> Variable:
        """Return a variable whose atoms, where given, settle its spikes, and its support unless that is given too."""
        given = self._given_dictionaries()
        if variable.name not in given or variable.categories is not None:
            return variable
        spikes = tuple(given[variable.name].spikes) if variable.kind is Kind.CONTINUOUS else ()
        bounded = variable.name in (self.supports or {})
        return replace(variable, spikes=spikes, support=variable.support if bounded else EVERYWHERE)

    def _most_bins(self, schema: Schema) -> int:
        """Return the most bins of a column, of which columns that are not categorical share a limited number."""
        share = MOST_BINS_OF_ALL // max(sum(v.categories is None for v in schema), 1)
        return min(self.n_bins, max(share, LEAST_BINS))

    def _given_dictionaries(self) -> Mapping[str, Dictionary]:
        if isinstance(self.dictionaries, Mapping):
            for name, given in self.dictionaries.items():
                if not isinstance(given, Dictionary):
                    raise InputError(f"dictionaries[{shown(name)}] must be a Dictionary, got {type(given).__name__}.")
            return self.dictionaries
        if self.dictionaries != "auto":
            raise InputError(
                f'dictionaries must be "auto" or a mapping from names to Dictionary, got {shown(self.dictionaries)}.'
            )
        return {}

    def _rows(self, X: Any) -> FloatArray:
        """Encoded rows of a table at prediction; an unseen category counts as missing, with a warning."""
        check_is_fitted(self, "density_")
        return encode(self._read(X, reset=False), self._feature_schema(), unseen="missing")

    def _feature_schema(self) -> Schema:
        return self.density_.schema

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
