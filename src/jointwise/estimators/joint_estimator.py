"""JointEstimator: the joint density of any table, stacked from several experts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import _BaseComposition

from jointwise._checks import shown, unknown_name, warn_caller
from jointwise._progress import Callback
from jointwise.estimators._columns import ColumnOptions, Columns
from jointwise.estimators._density import DensityEstimator, ExpertEstimator
from jointwise.estimators._tables import generator
from jointwise.estimators.gaussian_blocks import GaussianBlocks
from jointwise.estimators.jupad import JUPAD
from jointwise.estimators.tree_mixture import TreeMixture
from jointwise.exceptions import InputError, MisfitWarning
from jointwise.fitting.blocks import choose_columns, is_positive
from jointwise.fitting.blocks.warps import WarpName
from jointwise.fitting.by_class import by_class, has_classes
from jointwise.fitting.checkpoint import open_checkpoint
from jointwise.fitting.stack import IDENTIFYING, StackFit, StackOptions, fit_stack
from jointwise.fitting.trees import MOST_COLUMNS
from jointwise.fitting.weighing import MOST_LOSS, by_crosstabs
from jointwise.rows.base import Rows

# Warps of the blocks that are stacked.
STACKED_WARPS: tuple[WarpName, ...] = ("none", "joint", "log", "scores")
# Where the target is a class, these are stacked twice: learned from all rows, and from those of each class.
BY_CLASS = ("jupad", "blocks_none")
# Fewer columns of numbers have no correlation that a Gaussian block could add.
LEAST_BLOCK = 2
# Fewer columns have no tree.
LEAST_TREE = 2

Experts = Sequence[tuple[str, ExpertEstimator[Any]]]


class JointEstimator(DensityEstimator[StackOptions], _BaseComposition):
    r"""Joint density of any table: several experts, weighted by how well they predict held-out rows.

    .. math:: f(x) = \sum_k w_k f_k(x)

    No single model suits every table. :class:`JUPAD`, a mixture of products, follows any shape of a column;
    :class:`GaussianBlocks` follows columns that are correlated; :class:`TreeMixture` follows columns that depend on
    their neighbours. Each expert is learned without some of the rows and predicts them. The weights are those whose sum
    predicts them best, and experts without weight are dropped. From 2,000 rows on, the weights are those that predict
    tables of three columns best, as questions name few columns, and at most `most_loss` nats of a whole row are given
    up for it.
    The sum answers every question exactly, as each expert does: conditioning reweighs them by how likely each holds
    what is known.

    Parameters
    ----------
    experts : "auto" or list of (name, estimator)
        What is stacked. "auto" is ``JUPAD()``, four kinds of ``GaussianBlocks()`` and ``TreeMixture()``, and from
        2,000 rows and four columns on ``TreeMixture("many")``. Where `target` is one of at most ten classes with 20
        rows or more in each, ``JUPAD()`` and ``GaussianBlocks("none")`` are also learned from the rows of each class by
        themselves. A table with fewer than two columns of numbers for a block has no blocks, one with fewer than two
        positive columns no block of logarithms, and one column has JUPAD alone. What this estimator says about columns
        and the fit replaces what they say: `kinds`, `supports`, `steps`, `drop`, `keep`, `missing`, `n_bins`, `device`
        and below.
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
    most_loss : float
        Most nats of a held-out row that are given up for better answers about few columns, in tables of 2,000 rows or
        more. Zero weighs experts by whole rows alone, which is best for the likelihood of rows.
    target : str, optional
        Column that matters: experts are weighed by how well they predict it from the other columns of held-out rows,
        instead of whole rows and tables of three columns. :class:`JointClassifier` names the class here.
    n_bins : int
        Most bins of a column that is neither categorical nor an integer with few values, for experts that use bins.
    max_iter : int
        Most steps of the last stage of each expert.
    tol : float
        Tolerance of the last stage: change of the mean log-likelihood of a row, in nats.
    device : "cpu" or "cuda"
        Where passes over the rows run; "cuda" needs an NVIDIA card and the extra `gpu`.
    scratch_dir : str or Path, optional
        Folder for the codes of tables that are not in memory, if they take more than 512 MiB.
    checkpoint : str or Path, optional
        File to which the fit writes where it stands, as for :class:`JUPAD`.
    random_state : int, RandomState or None
        Deals rows to folds and draws the starts.
    verbose : bool
        Show progress on stderr, as for :class:`JUPAD`.
    on_interrupt : "raise" or "keep"
        What Ctrl-C does while the experts are fitted to all rows: end the fit, or keep the experts that are fitted by
        then, with a ``ConvergenceWarning``.

    Attributes
    ----------
    density_ : JointDensity
        The fitted density, for conditionals, probabilities, quantiles and all other questions.
    expert_weights_ : dict of str to float
        Weight of each expert; zero if it was dropped.
    fit_ : StackFit
        All that the fit found: each expert's own fit and held-out score.
    check_ : Check or None
        How the sum, learned without some rows, answers questions about them: errors beyond noise, worst first, and a
        verdict in words. None for tables under 200 rows.
    left_out_ : tuple of str
        Columns that were left out of the fit.
    stages_, n_iter_, converged_
        As in :class:`JUPAD`, of all experts that were kept.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from jointwise import JointEstimator
    >>> rng = np.random.default_rng(0)
    >>> size = rng.normal(size=300)
    >>> table = {"size": size, "weight": size + 0.2 * rng.normal(size=300), "sold": np.where(size > 0, "yes", "no")}
    >>> model = JointEstimator(random_state=0).fit(table)
    >>> sorted(model.expert_weights_)
    ['blocks_joint', 'blocks_none', 'blocks_scores', 'jupad', 'trees']
    >>> round(model.density_.condition({"size": 1.0}).mean()["weight"], 1)
    1.0
    """

    def __init__(
        self,
        experts: Literal["auto"] | Experts = "auto",
        *,
        kinds: Mapping[str, str] | None = None,
        supports: Mapping[str, tuple[Any, Any] | None] | None = None,
        steps: Mapping[str, float] | None = None,
        drop: Sequence[str] = (),
        keep: Sequence[str] = (),
        missing: Literal["ignorable", "informative", "auto"] = "ignorable",
        most_loss: float = MOST_LOSS,
        target: str | None = None,
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
        self.experts = experts
        self.kinds = kinds
        self.supports = supports
        self.steps = steps
        self.drop = drop
        self.keep = keep
        self.missing = missing
        self.most_loss = most_loss
        self.target = target
        self.n_bins = n_bins
        self.max_iter = max_iter
        self.tol = tol
        self.device = device
        self.scratch_dir = scratch_dir
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose
        self.on_interrupt = on_interrupt

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, with those of given experts as ``name__parameter``."""
        return dict(self._get_params("experts", deep=deep))

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of given experts as ``name__parameter``."""
        self._set_params("experts", **params)
        return self

    def _fit_options(self) -> StackOptions:
        return replace(self._named_options(StackOptions), experts=self._experts())

    def _experts(self) -> Experts:
        """Return the experts to be stacked, checked."""
        if isinstance(self.experts, str) and self.experts == "auto":
            blocks = [(f"blocks_{warp}", GaussianBlocks(warp)) for warp in STACKED_WARPS]
            return [("jupad", JUPAD()), *blocks, ("trees", TreeMixture()), ("many_trees", TreeMixture("many"))]
        pairs = self.experts if isinstance(self.experts, Sequence) and not isinstance(self.experts, str) else ()
        if not pairs or not all(_is_named_expert(pair) for pair in pairs):
            raise InputError(
                '`experts` must be "auto" or a list of (name, estimator) with estimators such as JUPAD() and '
                f"GaussianBlocks(); got {shown(self.experts)}."
            )
        names = [name for name, _ in pairs]
        try:
            self._validate_names(names)
        except ValueError as error:
            raise InputError(f"`experts` must have names that differ, without two underscores: {error}.") from error
        return pairs

    def _column_options(self, options: StackOptions) -> ColumnOptions:
        given = {
            name: dictionary
            for _, expert in options.experts
            if isinstance(expert, JUPAD) and isinstance(expert.dictionaries, Mapping)
            for name, dictionary in expert.dictionaries.items()
        }
        return ColumnOptions(self.kinds, self.supports, self.steps, self.drop, self.keep, self.n_bins, given, fine=True)

    def _fit_coded(self, rows: Rows, columns: Columns, options: StackOptions, callback: Callback | None) -> StackFit:
        shared = {
            "max_iter": self.max_iter, "tol": self.tol, "device": self.device, "on_interrupt": self.on_interrupt,
            "random_state": self.random_state, "checkpoint": None,
        }  # fmt: skip
        if options.target is not None and options.target not in rows.schema.names:
            raise unknown_name("column", options.target, rows.schema.names)
        most_loss = options.most_loss if options.target is None else 0.0  # few columns are not what is asked about
        experts = options.experts
        if isinstance(self.experts, str):
            block = choose_columns(rows).columns
            experts = [pair for pair in experts if _suits(pair[1], rows, block, most_loss)]
        rng = generator(self.random_state)
        learners = [
            clone(expert).set_params(**shared).learner(name, columns, alone=len(experts) == 1)
            for name, expert in experts
        ]
        if isinstance(self.experts, str) and options.target is not None and has_classes(rows, options.target):
            learners += [by_class(learner, options.target) for learner in learners if learner.name in BY_CLASS]
        checkpoint = open_checkpoint(rows, options, rng, IDENTIFYING)
        return fit_stack(
            rows,
            columns.coarse,
            learners,
            rng,
            callback,
            checkpoint=checkpoint,
            repeated=columns.repeated,
            most_loss=most_loss,
            target=options.target,
            tell=self._tell,
        )

    def _keep(self, fit: StackFit) -> None:  # type: ignore[override]  # what `_fit_coded` returns
        """Keep what a fit found, and warn where it stopped short or is far off."""
        super()._keep(fit)
        self.expert_weights_ = {expert.name: expert.weight for expert in fit.experts}
        self.check_ = fit.check
        if fit.check is not None and fit.check.is_far:
            warn_caller(f"{fit.check.verdict} See `check_` for more.", MisfitWarning)


def _suits(expert: ExpertEstimator[Any], rows: Rows, block: Sequence[int], most_loss: float) -> bool:
    """Whether an expert could add anything to the others on these rows, of which some columns may join a block."""
    if isinstance(expert, GaussianBlocks):
        seen = [n for n in block if is_positive(rows, n)] if expert.warp == "log" else block
        return len(seen) >= LEAST_BLOCK
    if isinstance(expert, TreeMixture):
        if expert.n_components == "many" and not by_crosstabs(rows, most_loss):
            return False
        return LEAST_TREE <= len(rows.axes) <= MOST_COLUMNS
    return True


def _is_named_expert(pair: Any) -> bool:
    return (
        isinstance(pair, Sequence)
        and len(pair) == 2
        and isinstance(pair[0], str)
        and isinstance(pair[1], ExpertEstimator)
    )
