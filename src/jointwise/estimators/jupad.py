"""JUPAD, the density estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from jointwise._typing import FloatArray
from jointwise.estimators._base import JointEstimator
from jointwise.estimators._tables import generator
from jointwise.rows.sources import LocalSource


class JUPAD(DensityMixin, JointEstimator):
    r"""Joint density of a table, by likelihood of its rows or from the counts of its pairs of columns alone.

    .. math:: f(x) = \sum_r \lambda_r \prod_n \sum_l B_n[l, r] \, d_{n,l}(x_n)

    Columns may be continuous, integer, categorical or dates, with gaps. Categories and integers with few values get
    one atom per value; other columns get the dictionary of 1-D densities that predicts their held-out counts best.

    By default the rows' likelihood is maximised by EM, with a prior that shrinks every component towards the
    independence of the columns; components that end without rows are dropped. With
    ``polish=None`` only pair counts are used: ``loss="frobenius"`` is the algorithm of the paper [1]_ in its three
    stages, ``loss="kl"`` fits the same model to the same counts by their likelihood.

    Parameters
    ----------
    n_components : int or "auto"
        Number of components F, the rank of the tensor, at the start of each model. "auto" chooses by held-out
        likelihood; from pairs alone it is 10.
    polish : "likelihood" or None
        Fit the rows' likelihood, or stop at what pairs tell.
    beta : float or "auto"
        Strength of the prior, in rows per component; "auto" chooses by held-out likelihood. Not used for pairs.
    n_models : int or "auto"
        Number of fits with different dictionaries and starts whose mean is the density. The mean is more accurate
        where rows are few, and has as many times the components. "auto" is 5 up to 10,000 rows, 3 up to 50,000,
        then 1; it is 1 where `n_components` is given. Not used for pairs.
    loss : "kl" or "frobenius"
        With ``polish=None``, and in ``fit_marginals``: composite pairwise likelihood, or the paper's squared error.
    dictionaries : "auto" or mapping of column names to Dictionary
        Columns that are not named get the automatic choice.
    learn_dictionary : bool or "auto"
        Whether locations and scales of atoms are learned from the rows too; "auto" is where held-out likelihood gains,
        of tables with at least 2,000 rows. It helps most where given dictionaries are coarse. Not used for pairs.
    kinds : mapping of column names to "continuous", "integer", "categorical" or "ordinal", optional
        Overrides what is found from the column's type.
    supports : mapping of column names to (low, high) or None, optional
        Overrides the bounds that the rows make plain, such as zero for durations; None is no bounds, and None for
        an end leaves it open. Nothing has a probability beyond.
    steps : mapping of column names to float, optional
        Overrides the step that all values of a continuous column are multiples of, such as 0.01 for prices; zero is
        none. Samples and quantiles are rounded to it, and a single value has the probability of what is rounded to it.
    drop : list of str
        Columns to leave out.
    keep : list of str
        Columns to have in though they seem to name the rows: texts that nearly all differ, and numbers 1, 2, 3, ...
        These are left out by default, with a warning; not so columns that `kinds`, `supports`, `steps` or
        `dictionaries` name.
    n_bins : int
        The most bins for a column that is neither categorical nor an integer with few values. Columns of a wide
        table get fewer: 8192 are shared among all.
    learning_rates : (eta_T, eta_B, eta_L), optional
        The paper's rates for ``loss="frobenius"``; found by backtracking by default.
    n_init : int
        Random starts, shared by the models, or splits of the variables (frobenius); the best is kept.
    max_iter : int
        The most steps of the last stage.
    tol : float
        Its tolerance: change of the mean log-likelihood of a row or pair, or relative change of J (frobenius).
    device : "cpu" or "cuda"
        Where passes over the rows run; "cuda" needs an NVIDIA card and the extra `gpu`.
    scratch_dir : str or Path, optional
        Folder for the codes of tables that are not in memory, one or two bytes a cell, where they would take more
        than 512 MiB; the system's folder for temporary files by default. The file ends with the fit.
    checkpoint : str or Path, optional
        File to which the fit writes where it stands, in one step every few seconds. The same fit of the same table
        goes on from there after a stop, repeats the steps since at most, and ends with the same model: to the bit, on
        the CPU and with as many threads. Without a seed it goes on with the one drawn at first. At its end, if not
        interrupted, the file is removed. A file of another fit is refused and left as it is. Not used for pairs,
        which are fitted in a moment.
    random_state : int, RandomState or None
        Deals counts to cross-validation folds and draws the starts.
    verbose : bool
        Show on stderr how the fit goes: as a progress line where `rich` is installed and stderr is a terminal or a
        notebook, else as lines at most once a second, which go to the logger "jointwise" if it shows its INFO.
    on_interrupt : "raise" or "keep"
        What Ctrl-C does during the last stage: end the fit, or end the steps with the density reached by then and a
        ``ConvergenceWarning``; of several models, those fitted by then are averaged. Before the last stage of the
        first there is no density to keep, and it always ends the fit.

    Attributes
    ----------
    left_out_ : tuple of str
        Columns that were left out of the fit.
    density_ : JointDensity
        The fitted density, for conditionals, probabilities, quantiles and all other questions.
    beta_ : float
        Strength of the prior that was used; only where rows were.
    check_ : Check or None
        How a model like this one, learned without some rows, answers questions about them: what is wrong beyond noise,
        worst first, and a verdict in words. Where it is far beyond noise, `fit` warns with a ``MisfitWarning``. None
        for tables under 200 rows, for pairs, and where the fit was interrupted.
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

    def fit_blocks(self, blocks: Callable[[], Iterable[Any]]) -> Self:
        """Learn from a table that is met in blocks, such as a file that is larger than memory.

        It is read twice, once for its profile and once for its codes, and of each cell one or two bytes are kept. The
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
        self._check_parameters()
        return self._fit_source(LocalSource(blocks))

    def score_samples(self, X: Any) -> FloatArray:
        """Log-density of each row; gaps are integrated out."""
        rows = self._rows(X)
        return self.density_.mixture.logpdf(rows)

    def score(self, X: Any, y: None = None) -> float:
        """Mean log-density of the rows."""
        return float(np.mean(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None) -> Any:
        """Draw rows from the fitted density, in the frame type that was fitted."""
        check_is_fitted(self, "density_")
        return self.density_.sample(n_samples, rng=generator(random_state))
