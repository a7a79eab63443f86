"""JUPAD, the mixture of products over dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from jointwise._checks import check_choice, warn_caller
from jointwise._progress import progress, tell
from jointwise._typing import FloatArray
from jointwise.dictionary import Dictionary
from jointwise.estimators._columns import ColumnOptions, Columns
from jointwise.estimators._summary import summary_text, warn_unfinished
from jointwise.estimators._tables import TableEstimator, generator, row_weights
from jointwise.exceptions import InputError, MisfitWarning, StorageError
from jointwise.fitting import Fit, Options, fit, fit_pairs
from jointwise.fitting.checkpoint import check_checkpoint
from jointwise.marginals import PairwiseMarginals, Profile
from jointwise.rows.base import Rows
from jointwise.rows.coded import CodedRows
from jointwise.rows.sources import LocalSource, Source, find_source
from jointwise.tables import encode


class JUPAD(DensityMixin, TableEstimator):
    r"""Joint density of a table, by likelihood of its rows or from the counts of its pairs of columns alone.

    .. math:: f(x) = \sum_r \lambda_r \prod_n \sum_l B_n[l, r] \, d_{n,l}(x_n)

    Columns may be continuous, integer, categorical or dates, with gaps. Categories and integers with few values get
    one atom per value; other columns get the dictionary of 1-D densities that predicts their held-out counts best.

    ``method="rows"``, the default, maximises the likelihood of the rows by EM, with a prior that shrinks every
    component towards the independence of the columns; components that end without rows are dropped. The other methods
    use pair counts only: ``method="paper"`` is the algorithm of the paper [1]_ in its three stages, and
    ``method="pairs"`` fits the same model to the same counts by their likelihood.

    Parameters
    ----------
    n_components : int or "auto"
        Number of components F, the rank of the tensor, at the start of each model. "auto" chooses by held-out
        likelihood; from pairs alone it is 10.
    method : "rows", "pairs" or "paper"
        Fit the likelihood of the rows, the composite likelihood of their pairs of columns, or the squared error of
        those pairs in the paper's three stages. :meth:`fit_marginals` has pairs only, so "rows" means "pairs" there.
    beta : float or "auto"
        Strength of the prior, in rows per component; "auto" chooses by held-out likelihood. Rows only.
    n_models : int or "auto"
        Number of fits with different dictionaries and starts whose mean is the density. The mean is more accurate
        where rows are few, and has as many times the components. "auto" is 5 up to 10,000 rows, 3 up to 50,000,
        then 1; it is 1 where `n_components` is given. Rows only.
    dictionaries : "auto" or mapping of column names to Dictionary
        Columns that are not named get the automatic choice.
    learn_dictionary : bool or "auto"
        Whether locations and scales of atoms are learned from the rows too. "auto" learns them if that raises the
        held-out likelihood and the table has at least 2,000 rows. It helps most where given dictionaries are coarse.
        Rows only.
    kinds : mapping of column names to "continuous", "integer", "categorical" or "ordinal", optional
        Overrides what is found from the column's type.
    supports : mapping of column names to (low, high) or None, optional
        Overrides the bounds that the rows suggest, such as zero for durations. None means no bounds, and None as an
        end leaves that end open. Values beyond a bound have probability zero.
    steps : mapping of column names to float, optional
        Overrides the step that all values of a continuous column are multiples of, such as 0.01 for prices; zero means
        none. Samples and quantiles are rounded to the step, and a single value has the probability of what is rounded
        to it.
    drop : list of str
        Columns to leave out.
    keep : list of str
        Columns to fit although they seem to name the rows: texts that nearly all differ, and numbers 1, 2, 3, ...
        By default these are left out with a warning, unless `kinds`, `supports`, `steps` or `dictionaries` names them.
    n_bins : int
        Most bins of a column that is neither categorical nor an integer with few values. Columns of a wide table get
        fewer: all columns share 8192.
    learning_rates : (eta_T, eta_B, eta_L), optional
        The paper's rates, for ``method="paper"`` only; found by backtracking by default.
    n_init : int
        Number of random starts, shared by the models, or of splits of the variables (paper); the best is kept.
    max_iter : int
        Most steps of the last stage.
    tol : float
        Tolerance of the last stage: change of the mean log-likelihood of a row or pair, or relative change of J
        (paper).
    device : "cpu" or "cuda"
        Where passes over the rows run; "cuda" needs an NVIDIA card and the extra `gpu`.
    scratch_dir : str or Path, optional
        Folder for the codes of tables that are not in memory, if they take more than 512 MiB (one or two bytes a
        cell). The default is the system's folder for temporary files. The file is removed when the fit ends.
    checkpoint : str or Path, optional
        File to which the fit writes where it stands, in one step every few seconds. After a stop, the same fit of the
        same table goes on from there, repeats a few seconds' work at most, and ends with the same model: to the bit, on
        the CPU and with the same number of threads. Without a seed it goes on with the one drawn at first. The file is
        removed at the end of a fit that was not interrupted. A file of another fit is refused and left as it is.
        Rows only: pairs are fitted in a moment.
    random_state : int, RandomState or None
        Deals counts to cross-validation folds and draws the starts.
    verbose : bool
        Show progress on stderr: as a progress line where `rich` is installed and stderr is a terminal or a notebook,
        else as lines at most once a second, which go to the logger "jointwise" if it shows its INFO.
    on_interrupt : "raise" or "keep"
        What Ctrl-C does during the last stage: end the fit, or end the steps with the density reached by then and a
        ``ConvergenceWarning``. Of several models, those fitted by then are averaged. Before the last stage of the
        first model there is no density to keep, and Ctrl-C always ends the fit.

    Attributes
    ----------
    left_out_ : tuple of str
        Columns that were left out of the fit.
    density_ : JointDensity
        The fitted density, for conditionals, probabilities, quantiles and all other questions.
    fit_ : Fit
        All that the fit found: the density, the choices behind it (`fit_.choice`), and how its stages went.
    beta_ : float
        Strength of the prior that was used. Rows only.
    check_ : Check or None
        How a model like this one, learned without some rows, answers questions about them: errors beyond noise, worst
        first, and a verdict in words. If they are far beyond noise, `fit` warns with a ``MisfitWarning``. None for
        tables under 200 rows, from pairs, and after an interrupted fit.
    stages_ : mapping of str to Solution
        How each stage of the fit went.
    n_iter_ : int
        Steps of the last stage.
    converged_ : bool
        Whether the last stage met its tolerance.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    .. [1] S. ul Haque, A. Rajwade, K. S. Gurumoorthy: Joint Probability Estimation Using Tensor Decomposition and
       Dictionaries.

    Examples
    --------
    >>> from jointwise import JUPAD
    >>> from jointwise.datasets import hybrid
    >>> rows = hybrid(rng=0).sample(2000, rng=1)
    >>> model = JUPAD(n_components=4, random_state=0).fit(rows)
    >>> model.density_.condition({"x0": (0, None)}).names
    ('x0', 'x1', 'x2', 'x3')
    """

    def __init__(
        self,
        n_components: int | Literal["auto"] = "auto",
        *,
        method: Literal["rows", "pairs", "paper"] = "rows",
        beta: float | Literal["auto"] = "auto",
        n_models: int | Literal["auto"] = "auto",
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
        self.method = method
        self.beta = beta
        self.n_models = n_models
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
        self._fit_rows(CodedRows.of(table, columns.schema, columns.axes, weights), columns, options)
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

    def fit_marginals(self, marginals: PairwiseMarginals) -> Self:
        """Fit from pair counts alone; no row is needed.

        Parameters
        ----------
        marginals : PairwiseMarginals
            Counts of every pair of columns, gathered anywhere and added up.
        """
        options = self._fit_options()
        with progress(type(self).__name__, self.max_iter, enabled=self.verbose) as callback:
            self._keep(fit_pairs(marginals, options, generator(self.random_state), callback))
        self._record_names(self.density_.schema)
        return self

    def score_samples(self, X: Any) -> FloatArray:
        """Log-density of each row; gaps are integrated out."""
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

    def _options(self) -> tuple[Options, ColumnOptions]:
        """Check every parameter, before any work is done."""
        check_choice("on_interrupt", self.on_interrupt, ("raise", "keep"))
        if self.scratch_dir is not None and not Path(self.scratch_dir).is_dir():
            raise StorageError(
                f"`scratch_dir` must be a folder or None; there is none at {str(self.scratch_dir)!r}. "
                "Give scratch_dir a folder that exists and can be written."
            )
        options = self._fit_options()
        if self.method == "rows" and self.checkpoint is not None:
            check_checkpoint(self.checkpoint)
        about = ColumnOptions(self.kinds, self.supports, self.steps, self.drop, self.keep, self.n_bins, options.given)
        return options, about

    def _fit_options(self) -> Options:
        named = {field.name: getattr(self, field.name) for field in fields(Options) if hasattr(self, field.name)}
        return Options(**named, keep_on_interrupt=self.on_interrupt == "keep")

    def _fit_source(self, source: Source, options: Options, about: ColumnOptions) -> Self:
        self._tell("reading the table, for its profile")
        profile = source.profile()
        columns = about.settle(profile)
        folder = None if self.scratch_dir is None else Path(self.scratch_dir)
        self._tell("reading it again, for its codes")
        with source.coded(columns.schema, columns.axes, folder) as rows:
            self._tell(f"{len(rows):,} rows of {len(columns.axes)} columns are coded")
            self._fit_rows(rows, columns, options)
        self._record_names(profile)
        return self

    def _fit_rows(self, rows: Rows, columns: Columns, options: Options) -> None:
        with progress(type(self).__name__, self.max_iter, enabled=self.verbose) as callback:
            found = fit(rows, options, generator(self.random_state), callback, repeated=columns.repeated)
        self.left_out_ = columns.left_out
        self._keep(found)

    def _keep(self, fit: Fit) -> None:
        """Keep what a fit found, and warn where it stopped short or is far off."""
        self.fit_, self.density_, self.check_, self.stages_ = fit, fit.density, fit.check, fit.stages
        self.n_iter_ = max([1, *(stage.n_steps for stage in fit.final)])
        self.converged_ = fit.unfinished is None
        if fit.choice.beta is not None:
            self.beta_ = fit.choice.beta
        elif hasattr(self, "beta_"):  # of an earlier fit from rows
            del self.beta_
        warn_unfinished(fit)
        if fit.check is not None and fit.check.is_far:
            warn_caller(f"{fit.check.verdict} See `check_` for more.", MisfitWarning)

    def _tell(self, what: str) -> None:
        tell(type(self).__name__, what, enabled=self.verbose)


def _weighted(source: Source, sample_weight: Any) -> Source:
    if sample_weight is None:
        return source
    if not isinstance(sample_weight, str):
        raise InputError(
            "sample_weight of a table that is read in blocks must be the name of one of its columns; got "
            f"{type(sample_weight).__name__}. Add the weights to the table as a column."
        )
    return source.with_weights(sample_weight)
