"""JUPAD, the mixture of products over dictionaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from jointwise._checks import warn_caller
from jointwise._progress import Callback, progress
from jointwise.dictionary import Dictionary
from jointwise.estimators._columns import ColumnOptions, Columns
from jointwise.estimators._density import ExpertEstimator
from jointwise.estimators._tables import generator
from jointwise.exceptions import InputError, MisfitWarning
from jointwise.fitting import Choice, Fit, Options, fit, fit_pairs, fit_rows
from jointwise.fitting.average import average
from jointwise.fitting.checkpoint import Checkpoint
from jointwise.fitting.choice import choose_model, short_fit
from jointwise.fitting.learners import Known, Learner
from jointwise.fitting.order import in_order
from jointwise.fitting.possible import made_possible
from jointwise.joint.density import JointDensity
from jointwise.marginals import PairwiseMarginals
from jointwise.rows.base import Rows

# What a short look fits.
LOOK_COMPONENTS, LOOK_BETA = 16, 1.0


class JUPAD(ExpertEstimator[Options]):
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
    missing : "ignorable", "informative" or "auto"
        What gaps are. "ignorable": no part of the model, cells that happen not to be known. "informative": part of it;
        each column with gaps has a variable, named such as "pay missing", that is true where its cell is missing.
        "auto" has it for the columns whose gaps other columns predict on held-out rows. Rows only.
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
        missing: Literal["ignorable", "informative", "auto"] = "ignorable",
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
        self.missing = missing
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

    def fit_marginals(self, marginals: PairwiseMarginals) -> Self:
        """Fit from pair counts alone; no row is needed.

        Parameters
        ----------
        marginals : PairwiseMarginals
            Counts of every pair of columns, gathered anywhere and added up.
        """
        options = self._fit_options()
        if self.missing != "ignorable":
            raise _no_gaps("fit_marginals")
        with progress(type(self).__name__, self.max_iter, enabled=self.verbose) as callback:
            self._keep(fit_pairs(marginals, options, generator(self.random_state), callback))
        self._record_names(self.density_.schema)
        return self

    def _fit_options(self) -> Options:
        return self._named_options(Options)

    def _column_options(self, options: Options) -> ColumnOptions:
        if options.method != "rows" and self.missing != "ignorable":
            raise _no_gaps(f'method="{options.method}"')
        return ColumnOptions(self.kinds, self.supports, self.steps, self.drop, self.keep, self.n_bins, options.given)

    def _keeps_checkpoint(self) -> bool:
        return self.method == "rows"

    def _fit_coded(self, rows: Rows, columns: Columns, options: Options, callback: Callback | None) -> Fit:
        return fit(rows, options, generator(self.random_state), callback, repeated=columns.repeated)

    def learner(self, name: str, columns: Columns, *, alone: bool = False) -> Learner:
        """Return how a stack learns this estimator from rows with fine axes; alone, it is checked as usual."""
        options = self._fit_options()
        if options.method != "rows" and columns.schema.gaps:
            raise _no_gaps(f'method="{options.method}"')
        repeated = columns.repeated if alone else None

        def coarse(rows: Rows) -> Rows:
            return rows.regrouped(columns.coarse_of(rows)).on(options.device)

        def look(rows: Rows, rng: np.random.Generator, known: Known) -> JointDensity:
            some = in_order(coarse(rows))
            model = tuple((options.given.get(name) or known[name]) for name in some.schema.names)
            fitted = short_fit(some, Choice((model,), LOOK_COMPONENTS, LOOK_BETA), rng, n_starts=1)
            mixture = made_possible(average([fitted.dictionaries], [fitted.factors]), some, options.given)
            return JointDensity(some.schema, mixture).marginal(rows.schema.names)

        def choose(
            rows: Rows, rng: np.random.Generator, checkpoint: Checkpoint, _: Known, __: Mapping[str, Any]
        ) -> Choice | None:
            if alone or options.method != "rows":  # the fit chooses
                return None
            return choose_model(in_order(coarse(rows)), options, rng, checkpoint)

        def learn(
            rows: Rows,
            choice: Choice | None,
            rng: np.random.Generator,
            callback: Callback | None,
            checkpoint: Checkpoint,
        ) -> Fit:
            if options.method == "rows":
                return fit_rows(
                    coarse(rows), options, rng, callback, choice=choice, repeated=repeated, checkpoint=checkpoint
                )
            return fit_pairs(coarse(rows).pairs(), options, rng, callback)

        def single(choice: Choice | None) -> Choice | None:
            return choice and replace(choice, models=choice.models[:1])

        return Learner(name, look, choose, single, learn)

    def _keep(self, fit: Fit) -> None:  # type: ignore[override]  # what `_fit_coded` returns
        """Keep what a fit found, and warn where it stopped short or is far off."""
        super()._keep(fit)
        self.check_ = fit.check
        if fit.choice.beta is not None:
            self.beta_ = fit.choice.beta
        elif hasattr(self, "beta_"):  # of an earlier fit from rows
            del self.beta_
        if fit.check is not None and fit.check.is_far:
            warn_caller(f"{fit.check.verdict} See `check_` for more.", MisfitWarning)


def _no_gaps(what: str) -> InputError:
    return InputError(
        f"A model of gaps needs whole rows, but {what} has pairs of cells that are both there. Fit rows with "
        'method="rows", or leave gaps out with missing="ignorable".'
    )
