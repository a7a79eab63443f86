"""GaussianBlocks, the mixture whose components are Gaussian over correlated columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from jointwise._progress import Callback
from jointwise.estimators._columns import ColumnOptions, Columns
from jointwise.estimators._density import ExpertEstimator
from jointwise.estimators._tables import generator
from jointwise.fitting.blocks import BlockChoice, BlockFit, BlockOptions, choose_blocks, fit_blocks
from jointwise.fitting.blocks.choice import ROWS_PER_COMPONENT, short_run
from jointwise.fitting.blocks.designs import Designs
from jointwise.fitting.blocks.start import start_groups
from jointwise.fitting.checkpoint import Checkpoint
from jointwise.fitting.learners import Known, Learner
from jointwise.fitting.order import in_order
from jointwise.joint.density import JointDensity
from jointwise.rows.base import Rows
from jointwise.rows.coded import CodedRows

# What a short look fits.
LOOK_COMPONENTS, LOOK_NU = 8, 20.0
# Rows for each column and component of the block that it needs: a covariance of fewer rows follows chance.
LOOK_ROWS = 2


class GaussianBlocks(ExpertEstimator[BlockOptions]):
    r"""Joint density of a table whose columns of numbers are correlated, by likelihood of its rows.

    .. math::
        f(x) = \sum_r \lambda_r \, N(w(x_C); \mu_r, \Sigma_r) \, |w'(x_C)|
               \prod_{n \notin C} \sum_l B_n[l, r] \, d_{n,l}(x_n)

    The block C holds the columns of numbers with many values, dates and integers among them, each seen through an
    increasing map w. Within a component they are correlated, which a mixture of products such as :class:`JUPAD` can
    only follow with many components. A value that many rows share, a spike, has a probability of its own in each
    component. Categories, integers with few values and all other columns are independent given the component, with
    atoms as in :class:`JUPAD`. Gaps are welcome.

    EM maximises the likelihood of the rows with a prior that draws the covariances of all components towards each
    other. It starts from groups of nearby rows.

    Parameters
    ----------
    warp : "none", "power", "log", "scores" or "joint"
        The map w of each column of the block: the straight line that standardises it, the Yeo-Johnson power with the
        highest likelihood, the logarithm (of columns that are not positive, the power), the one that takes the
        column's own 1-D fit to a Gaussian, or the maps of all columns together after which they are closest to one
        Gaussian. Integers within a narrow range keep a straight line.
    n_components : int or "auto"
        Number of components F at the start of each model. "auto" chooses by held-out likelihood.
    nu : float or "auto"
        Strength of the prior of covariances, in rows per component; "auto" chooses by held-out likelihood.
    beta : float
        Strength of the prior of the columns outside the block and of spikes, in rows per component.
    n_models : int or "auto"
        Number of fits from different starts whose mean is the density. "auto" is 3 up to 100,000 rows, then 1; it is 1
        where `n_components` is given.
    kinds : mapping of column names to "continuous", "integer", "categorical" or "ordinal", optional
        Overrides what is found from the column's type.
    steps : mapping of column names to float, optional
        Overrides the step that all values of a continuous column are multiples of, such as 0.01 for prices; zero means
        none. Samples and quantiles are rounded to the step, and a single value has the probability of what is rounded
        to it.
    drop : list of str
        Columns to leave out.
    keep : list of str
        Columns to fit although they seem to name the rows: texts that nearly all differ, and numbers 1, 2, 3, ...
        By default these are left out with a warning, unless `kinds` or `steps` names them.
    missing : "ignorable", "informative" or "auto"
        What gaps are. "ignorable": no part of the model, cells that happen not to be known. "informative": part of it;
        each column with gaps has a variable, named such as "pay missing", that is true where its cell is missing.
        "auto" has it for the columns whose gaps other columns predict on held-out rows.
    n_bins : int
        Most bins of a column outside the block that is neither categorical nor an integer with few values, and of the
        1-D fits of scores.
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
    block_ : tuple of str
        Columns in the block; :meth:`summary` says why others are not.
    density_ : JointDensity
        The fitted density, for conditionals, probabilities, quantiles and all other questions.
    fit_ : BlockFit
        All that the fit found: the density, the choices behind it (`fit_.choice`), and how its stages went.
    nu_ : float
        Strength of the covariances' prior that was used.
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
    >>> from jointwise import GaussianBlocks
    >>> a = np.random.default_rng(0).normal(size=200)
    >>> b = a + 0.1 * np.random.default_rng(1).normal(size=200)
    >>> model = GaussianBlocks("none", n_components=1).fit({"a": a, "b": b})
    >>> model.block_, bool(np.mean(model.score_samples({"a": a, "b": b})) > -1.0)
    (('a', 'b'), True)
    """

    def __init__(
        self,
        warp: Literal["none", "power", "log", "scores", "joint"] = "scores",
        *,
        n_components: int | Literal["auto"] = "auto",
        nu: float | Literal["auto"] = "auto",
        beta: float = 0.03,
        n_models: int | Literal["auto"] = "auto",
        kinds: Mapping[str, str] | None = None,
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
        self.warp = warp
        self.n_components = n_components
        self.nu = nu
        self.beta = beta
        self.n_models = n_models
        self.kinds = kinds
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

    def _fit_options(self) -> BlockOptions:
        return self._named_options(BlockOptions)

    def _column_options(self, options: BlockOptions) -> ColumnOptions:
        return ColumnOptions(self.kinds, None, self.steps, self.drop, self.keep, self.n_bins, {}, fine=True)

    def _fit_coded(self, rows: Rows, columns: Columns, options: BlockOptions, callback: Callback | None) -> BlockFit:
        return fit_blocks(rows, columns.coarse, options, generator(self.random_state), callback)

    def learner(self, name: str, columns: Columns, *, alone: bool = False) -> Learner:
        """Return how a stack learns this estimator from rows with fine axes."""
        options = self._fit_options()
        designs = Designs(options.warp)

        def look(rows: Rows, rng: np.random.Generator, known: Known) -> JointDensity:
            design = designs.of(rows, columns.coarse_of(rows), rng, known)
            some = in_order(design.coded(rows))
            assert isinstance(some, CodedRows)  # held in memory, as folds are
            d = len(design.columns)
            problem = design.problem(some, max(LOOK_NU, float(d)), options.beta)
            # a covariance of its own needs more rows than columns
            n_components = min(LOOK_COMPONENTS, max(len(some) // max(ROWS_PER_COMPONENT, LOOK_ROWS * d), 1))
            factors = short_run(design, problem, some, n_components, start_groups(design, some, n_components, rng))
            return JointDensity(some.schema, design.expert(factors, some))

        def choose(
            rows: Rows, rng: np.random.Generator, checkpoint: Checkpoint, known: Known, others: Mapping[str, Any]
        ) -> BlockChoice:
            design = designs.of(rows, columns.coarse_of(rows), rng, known)
            chosen = (other for other in others.values() if isinstance(other, BlockChoice) and other.suits(options))
            found = next(chosen, None)  # one search serves all warps
            if found is None:
                found = choose_blocks(design, design.coded(rows), options, rng, checkpoint)
            return replace(found, dictionaries=design.chosen)

        def learn(
            rows: Rows, choice: BlockChoice, rng: np.random.Generator, callback: Callback | None, checkpoint: Checkpoint
        ) -> BlockFit:
            coarse = columns.coarse_of(rows)
            return fit_blocks(
                rows, coarse, options, rng, callback, choice=choice, designs=designs, checkpoint=checkpoint
            )

        def single(choice: BlockChoice) -> BlockChoice:
            return replace(choice, n_models=1)

        def weaker(choice: BlockChoice) -> BlockChoice | None:
            return choice.weaker() if options.nu == "auto" else None

        return Learner(name, look, choose, single, learn, BlockChoice.for_folds, weaker, kind=type(self).__name__)

    def _keep(self, fit: BlockFit) -> None:  # type: ignore[override]  # what `_fit_coded` returns
        """Keep what a fit found, and warn where it stopped short."""
        super()._keep(fit)
        inside = {fit.design.schema.names[n] for n in fit.design.columns}
        self.block_ = tuple(name for name in fit.density.names if name in inside)
        self.nu_ = fit.choice.nu
