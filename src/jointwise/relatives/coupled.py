"""CoupledPMF: the joint of discrete columns from their triples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from jointwise._typing import FloatArray
from jointwise.axes import encode_rows
from jointwise.marginals import Profile, SubsetMarginals
from jointwise.relatives._base import DISCRETE, DISCRETE_ADVICE, JointRelative, Seed
from jointwise.relatives._runs import record
from jointwise.relatives._states import state_axes, state_density
from jointwise.relatives._triples import CoupledRelative, spread_triples
from jointwise.tables.variables import Kind, Schema


class CoupledPMF(CoupledRelative, JointRelative):
    r"""Joint mass of discrete columns, as the low-rank tensor whose triples match the observed ones [1]_.

    .. math:: p(x) = \sum_r \lambda_r \prod_n A_n[x_n, r], \qquad
              \min \tfrac12 \sum_{j<k<l} \Bigl\| \hat Z_{jkl} - \sum_r \lambda_r A_j[:, r] \otimes A_k[:, r] \otimes
              A_l[:, r] \Bigr\|_F^2

    over weights and columns of :math:`A_n` (states x components) on the simplex. Triples determine the joint if its
    rank is moderate: for N variables with I states each, up to about :math:`(\lfloor N/3 \rfloor I + 1)^2 / 16`.

    As published: the model, the squared error, ADMM on one block after another with kept duals. Ours: the penalty
    rho = trace(G) / F of the authors' later code, several starts, the divergence as another loss, and gaps: a row is
    left out of the triples in which it has a missing cell.

    Parameters
    ----------
    n_components : int
        Number of components F.
    loss : "frobenius" or "kl"
        Squared error by ADMM, or Kullback-Leibler divergence by mirror descent.
    rho : float, optional
        Penalty of ADMM; trace(G) / F of each block by default. The code published with [1]_ fixes rho = 10, which is
        far too large for masses: blocks hardly move, and the fit ends short of the optimum.
    triples : float
        Share of all triples to use, evenly spaced in their order.
    kinds : mapping of column names to "integer", "categorical" or "ordinal", optional
        Overrides the kind detected from the column's type.
    n_init : int
        Random starts; the run with the lowest objective is kept.
    max_iter : int
        Most sweeps over all blocks.
    tol : float
        Stop when a sweep changes the objective by no more than this share of it.
    random_state : int, RandomState or None
        Draws the starts.

    Attributes
    ----------
    density_ : JointDensity
        With `n_components` components and one atom for each state.
    objective_ : float
        Squared error or divergence of the triples.
    n_iter_, converged_
        Sweeps of the run kept, and whether it met its tolerance.

    References
    ----------
    .. [1] N. Kargas, N. D. Sidiropoulos, X. Fu: Tensors, Learning, and "Kolmogorov Extension" for Finite-Alphabet
       Random Vectors. IEEE Transactions on Signal Processing 66(18), 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from jointwise.relatives import CoupledPMF
    >>> side = np.random.default_rng(0).integers(0, 2, size=500)
    >>> model = CoupledPMF(2, random_state=0).fit({"a": side, "b": side, "c": 1 - side})
    >>> round(model.density_.condition({"a": 1}).probability({"c": 0}), 3)
    1.0
    """

    _kinds_taken: ClassVar[frozenset[Kind]] = DISCRETE
    _kind_advice: ClassVar[str] = DISCRETE_ADVICE
    _least_columns: ClassVar[int] = 3

    def __init__(
        self,
        n_components: int = 10,
        *,
        loss: str = "frobenius",
        rho: float | None = None,
        triples: float = 1.0,
        kinds: Mapping[str, str] | None = None,
        n_init: int = 3,
        max_iter: int = 500,
        tol: float = 1e-5,
        random_state: Seed = None,
    ) -> None:
        self.n_components = n_components
        self.loss = loss
        self.rho = rho
        self.triples = triples
        self.kinds = kinds
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit_marginals(self, marginals: SubsetMarginals) -> Self:
        """Fit from counts or exact masses of triples, or of any subsets of two or more columns, without rows.

        Parameters
        ----------
        marginals : SubsetMarginals
            Of discrete variables, with a bin for each value; masses in place of counts are exact marginals.
        """
        self._check_parameters()
        self._check_columns(marginals.schema)
        self._fit_marginals(marginals)
        self._keep_schema(marginals.schema)
        return self

    def _fit(self, rows: FloatArray, schema: Schema, profile: Profile) -> None:  # noqa: ARG002  # every value is a bin
        axes = state_axes(schema, rows)
        subsets = spread_triples(len(axes), self.triples)
        self._fit_marginals(SubsetMarginals.from_codes(encode_rows(rows, axes), schema, axes, subsets))

    def _fit_marginals(self, marginals: SubsetMarginals) -> None:
        solution = self._best_run(marginals, "columns")
        self.density_ = state_density(marginals.schema, marginals.axes, solution.value)
        record(self, solution)
