"""TreeMixture, the mixture whose components are trees over the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from jointwise._progress import Callback
from jointwise.estimators._columns import ColumnOptions, Columns
from jointwise.estimators._density import ExpertEstimator
from jointwise.estimators._tables import generator
from jointwise.fitting.checkpoint import Checkpoint
from jointwise.fitting.learners import Known, Learner
from jointwise.fitting.order import in_order
from jointwise.fitting.trees import TreeChoice, TreeFit, TreeOptions, choose_trees, fit_pairs_tree, fit_trees
from jointwise.fitting.trees.choice import short_run
from jointwise.fitting.trees.design import TreeDesign
from jointwise.joint.density import JointDensity
from jointwise.marginals import PairwiseMarginals
from jointwise.rows.base import Rows
from jointwise.rows.coded import CodedRows
from jointwise.solvers.trees_em import chow_liu

# What a short look fits.
LOOK_COMPONENTS, LOOK_STATES, LOOK_PRIOR = 8, 16, (10.0, 30.0)
# A tree of it needs this many rows, and all its trees have at most this many pairs of states.
LOOK_ROWS, LOOK_ENTRIES = 8, 1 << 22


class TreeMixture(ExpertEstimator[TreeOptions]):
    r"""Joint density of a table whose columns depend on their neighbours, by likelihood of its rows.

    .. math:: f(x) = \sum_r \lambda_r \prod_n p_r(s_n \mid s_{\mathrm{parent}_r(n)}) \, d_{n, s_n}(x_n)

    Every column has states: its categories, its integers, or some bins and spikes of its numbers, within which
    the column keeps the shape of its own 1-D fit. Where held-out rows prefer it, numbers have smooth atoms instead of
    bins; these overlap, and the density is then summed over all states. Each component has a tree of its own, which
    says on which other column each column depends. So chains and clusters of columns, such as genes, pixels or the
    items of a survey, need few components, where a mixture of products such as :class:`JUPAD` needs many. One tree sees
    pairs alone; a mixture sees more, such as the exclusive or of two columns. Gaps are welcome.

    EM maximises the likelihood of the rows with a prior that draws all components towards the whole table and towards
    independence. In each step the best trees are those of the largest mutual information (Chow and Liu, 1968). EM
    starts from groups of nearby rows.

    Parameters
    ----------
    n_components : int, "auto" or "many"
        Number of trees F at the start of each model. "auto" chooses by held-out likelihood of rows. "many" is one tree
        for each 120 rows, up to 256, with 8 states and weak priors (alpha 1, gamma 3) where these are "auto", and EM
        ends early. Many trees answer questions about few columns better, and predict whole rows worse.
    states : "auto", "bins" or "atoms"
        What the states of a column of numbers are. "bins" do not overlap and may have sharp edges. "atoms" are smooth
        and overlap: splines of the column's own 1-D fit; trees are found with bins first. "auto" chooses by held-out
        likelihood, and is "bins" for large tables, for "many" trees and with device="cuda".
    n_states : int or "auto"
        Most bins of a column of numbers; "auto" is 4, 8, 16 or 32, by held-out likelihood. Spikes come on top. Bins are
        merged from many quantile bins, neighbours that tell the same of other columns first, and their edges then move
        to where they tell most. Atoms are 8, 16 or 32 of a column, or as many as are given here.
    alpha : float or "auto"
        Strength of the prior, in rows of independent columns per component; "auto" chooses by held-out likelihood.
    gamma : float or "auto"
        Strength of the prior, in rows of the whole table per component; "auto" chooses by held-out likelihood.
    n_models : int or "auto"
        Number of fits from different starts whose mean is the density. "auto" is 3 up to 100,000 rows, then 1; it is 1
        where `n_components` is a number, and at most 2 with "many".
    kinds : mapping of column names to "continuous", "integer", "categorical" or "ordinal", optional
        Overrides what is found from the column's type.
    supports : mapping of column names to (low, high) or None, optional
        Overrides the bounds that the rows suggest, such as zero for durations. None means no bounds, and None as an
        end leaves that end open.
    steps : mapping of column names to float, optional
        Overrides the step that all values of a continuous column are multiples of, such as 0.01 for prices; zero means
        none.
    drop : list of str
        Columns to leave out.
    keep : list of str
        Columns to fit although they seem to name the rows.
    missing : "ignorable", "informative" or "auto"
        What gaps are. "ignorable": no part of the model, cells that happen not to be known. "informative": part of it;
        each column with gaps has a variable, named such as "pay missing", that is true where its cell is missing.
        "auto" has it for the columns whose gaps other columns predict on held-out rows.
    n_bins : int
        Most bins of the 1-D fit of a column of numbers.
    max_iter : int
        Most steps of the last stage.
    tol : float
        Tolerance of the last stage: change of the mean log-likelihood of a row, in nats.
    device : "cpu" or "cuda"
        Where passes over the rows run; "cuda" needs an NVIDIA card and the extra `gpu`.
    scratch_dir : str or Path, optional
        Folder for the codes of tables that are not in memory, if they take more than 512 MiB (two bytes a cell). The
        default is the system's folder for temporary files. The file is removed when the fit ends.
    checkpoint : str or Path, optional
        File to which the fit writes where it stands, as for :class:`JUPAD`.
    random_state : int, RandomState or None
        Deals rows to cross-validation folds and draws the starts.
    verbose : bool
        Show progress on stderr, as for :class:`JUPAD`.
    on_interrupt : "raise" or "keep"
        What Ctrl-C does during the last stage, as for :class:`JUPAD`.

    Attributes
    ----------
    left_out_ : tuple of str
        Columns that were left out of the fit.
    density_ : JointDensity
        The fitted density, for conditionals, probabilities, quantiles and all other questions.
    fit_ : TreeFit
        All that the fit found: the density, the choices behind it (`fit_.choice`), and how its stages went.
    stages_ : mapping of str to Solution
        How each stage of the fit went.
    n_iter_ : int
        Steps of the last stage.
    converged_ : bool
        Whether the last stage met its tolerance.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from jointwise import TreeMixture
    >>> rng = np.random.default_rng(0)
    >>> a = rng.integers(2, size=500)
    >>> b = np.where(rng.random(500) < 0.9, a, 1 - a)
    >>> c = np.where(rng.random(500) < 0.9, b, 1 - b)
    >>> model = TreeMixture(1).fit({"a": a, "b": b, "c": c})
    >>> round(model.density_.condition({"a": 1}).probability({"c": 1}), 1)
    0.8
    """

    def __init__(
        self,
        n_components: int | Literal["auto", "many"] = "auto",
        *,
        states: Literal["auto", "bins", "atoms"] = "auto",
        n_states: int | Literal["auto"] = "auto",
        alpha: float | Literal["auto"] = "auto",
        gamma: float | Literal["auto"] = "auto",
        n_models: int | Literal["auto"] = "auto",
        kinds: Mapping[str, str] | None = None,
        supports: Mapping[str, tuple[Any, Any] | None] | None = None,
        steps: Mapping[str, float] | None = None,
        drop: Sequence[str] = (),
        keep: Sequence[str] = (),
        missing: Literal["ignorable", "informative", "auto"] = "ignorable",
        n_bins: int = 128,
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
        self.states = states
        self.n_states = n_states
        self.alpha = alpha
        self.gamma = gamma
        self.n_models = n_models
        self.kinds = kinds
        self.supports = supports
        self.steps = steps
        self.drop = drop
        self.keep = keep
        self.missing = missing
        self.n_bins = n_bins
        self.max_iter = max_iter
        self.tol = tol
        self.device = device
        self.scratch_dir = scratch_dir
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose
        self.on_interrupt = on_interrupt

    def fit_marginals(self, marginals: PairwiseMarginals) -> Self:
        """Fit one tree from pair counts alone; no row is needed.

        The tree is that of the largest mutual information (Chow and Liu, 1968). Pairs tell of one tree only, so
        `n_components` must be 1 or "auto".

        Parameters
        ----------
        marginals : PairwiseMarginals
            Counts of every pair of columns, gathered anywhere and added up.

        Examples
        --------
        >>> from jointwise import PairwiseMarginals, Profile, TreeMixture
        >>> data = {"x": [0, 1, 1, 0] * 20, "y": ["a", "b", "b", "a"] * 20}
        >>> profile = Profile.of(data)
        >>> schema = profile.schema()
        >>> pairs = PairwiseMarginals.of(data, schema, profile.axes(schema, n_bins=8))
        >>> model = TreeMixture(1).fit_marginals(pairs)
        >>> round(model.density_.condition({"x": 1}).probability({"y": "b"}), 2)
        0.99
        """
        self._keep(fit_pairs_tree(marginals, self._fit_options(), generator(self.random_state)))
        self._record_names(self.density_.schema)
        return self

    def _fit_options(self) -> TreeOptions:
        return self._named_options(TreeOptions)

    def _column_options(self, options: TreeOptions) -> ColumnOptions:
        return ColumnOptions(self.kinds, self.supports, self.steps, self.drop, self.keep, self.n_bins, {}, fine=True)

    def _fit_coded(self, rows: Rows, columns: Columns, options: TreeOptions, callback: Callback | None) -> TreeFit:
        return fit_trees(rows, columns.coarse, options, generator(self.random_state), callback)

    def learner(self, name: str, columns: Columns, *, alone: bool = False) -> Learner:
        """Return how a stack learns this estimator from rows with fine axes."""
        options = self._fit_options()
        many = options.n_components == "many"

        def look(rows: Rows, rng: np.random.Generator, known: Known) -> JointDensity:
            design = TreeDesign.of(rows, columns.coarse_of(rows), rng, known)
            space = design.even_space(LOOK_STATES)
            some = in_order(rows.regrouped(space.axes))
            assert isinstance(some, CodedRows)  # held in memory, as folds are
            problem = space.problem(some, *LOOK_PRIOR)
            most = min(len(some) // LOOK_ROWS, LOOK_ENTRIES // max(len(problem.known.tables), 1))
            if most < 2:  # one tree follows from the pairs
                factors = chow_liu(problem.known, problem.n_rows + problem.gamma, problem.alpha)
            else:
                factors = short_run(problem, some, min(LOOK_COMPONENTS, most), rng)
            return JointDensity(some.schema, space.expert(factors, problem.known.margins))

        def choose(
            rows: Rows, rng: np.random.Generator, checkpoint: Checkpoint, known: Known, _: Mapping[str, Any]
        ) -> TreeChoice:
            design = TreeDesign.of(rows, columns.coarse_of(rows), rng, known)
            return replace(choose_trees(design, rows, options, rng, checkpoint), dictionaries=design.chosen)

        def learn(
            rows: Rows, choice: TreeChoice, rng: np.random.Generator, callback: Callback | None, checkpoint: Checkpoint
        ) -> TreeFit:
            coarse = columns.coarse_of(rows)
            return fit_trees(rows, coarse, options, rng, callback, choice=choice, checkpoint=checkpoint)

        def single(choice: TreeChoice) -> TreeChoice:
            return choice if many else replace(choice, n_models=1)

        # neither a short look at rows nor one model tells what many trees are for
        return Learner(name, None if many else look, choose, single, learn, TreeChoice.for_folds)
