"""CPD3: densities from coupled factorisation of binned triples and sinc interpolation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from jointwise._checks import check_integer, check_real
from jointwise._typing import AnyArray, FloatArray
from jointwise.axes import Axis, BinnedAxis, code_dtype
from jointwise.estimators._tables import generator
from jointwise.exceptions import InputError
from jointwise.marginals import Profile, SubsetMarginals
from jointwise.relatives._base import Seed
from jointwise.relatives._conditionals import (
    Conditionals,
    SincConditionals,
    StateConditionals,
    bin_codes,
    checked_edges,
)
from jointwise.relatives._runs import record
from jointwise.relatives._states import state_axis
from jointwise.relatives._triples import CoupledRelative, spread_triples
from jointwise.tables import decode
from jointwise.tables.variables import Kind, Schema, Variable


class CPD3(CoupledRelative):
    r"""Density by coupled tensor factorisation of binned triples, then sinc interpolation [1]_.

    .. math:: f(x) = \sum_r \lambda_r \prod_n f_n(x_n \mid r)

    Each continuous column is cut into bins of equal width. Weights and bin masses :math:`A_n` (bins x components) are
    fitted to the masses of triples,

    .. math:: \min \tfrac12 \sum_{j<k<l} \Bigl\| \hat Z_{jkl} - \sum_r \lambda_r A_j[:, r] \otimes A_k[:, r] \otimes
              A_l[:, r] \Bigr\|_F^2 \quad \text{or} \quad \min \sum_{j<k<l} \mathrm{KL}(\hat Z_{jkl} \,\|\, \cdot),

    and :math:`f_n(x \mid r)` is the derivative of the sinc series through the distribution function of column r of
    :math:`A_n` at the edges, raised to `floor` where it is smaller.

    The defaults are the published ones: 15 bins of round width around the sample's range, at every sample size; all
    triples (the authors' demonstration keeps every fifth: ``triples=0.2``); 3 random starts; ADMM and mirror descent
    with their settings; series of 400 terms padded with ones on the right; the floor.

    **As published the score is not a density.** The floor gives it a total mass above one (1.05 to 1.7 on the paper's
    experiments, within the range of the bins; infinite over the whole line), and the mean log-ratio to the truth looks
    better by as much. ``normalize=True`` divides by the mass.

    Ours: the Euclidean projection on the simplex (the published one differs where a column's positive part sums to
    less than one); ``normalize``; integers and categories, whose states are bins with masses of at least `floor` that
    are not interpolated; gaps: a row is left out of the triples in which it has a missing cell, and a missing cell of
    a row to score is a factor of one.

    Parameters
    ----------
    n_components : int
        Number of components F. The published experiments use the true number.
    loss, triples, n_init, max_iter, tol, random_state
        As in :class:`CoupledPMF`.
    n_bins : int
        Bins of a continuous column.
    normalize : bool
        Divide each :math:`f_n(\cdot \mid r)` by its integral, so that f integrates to one. Outside the bins the floor
        then falls off with the square of the distance.
    n_terms : int
        Terms of the sinc series, more than `n_bins`.
    floor : float
        Smallest value of a conditional density (in the column's own units) or mass.
    kinds : mapping of column names to "continuous", "integer", "categorical" or "ordinal", optional
        Overrides the kind detected from the column's type. Take an integer column of many values as continuous.

    Attributes
    ----------
    weights_ : array of shape (F,)
        Mixing weights.
    masses_ : tuple of arrays of shape (bins or states, F)
        Bin masses of each column given each component.
    edges_ : tuple of arrays of shape (n_bins + 1,), or None for a column of states
        Edges of the bins.
    objective_, n_iter_, converged_
        As in :class:`CoupledPMF`.

    References
    ----------
    .. [1] N. Kargas, N. D. Sidiropoulos: Learning Mixtures of Smooth Product Distributions: Identifiability and
       Algorithm. AISTATS 2019.

    Examples
    --------
    >>> from jointwise.datasets import gaussians
    >>> from jointwise.relatives import CPD3
    >>> law = gaussians(rng=0)
    >>> model = CPD3(2, normalize=True, n_init=1, random_state=0).fit(law.sample(500, rng=1))
    >>> model.score_samples(law.sample(3, rng=2)).shape, model.sample(4, random_state=0).shape
    ((3,), (4, 6))
    """

    _least_columns: ClassVar[int] = 3

    def __init__(
        self,
        n_components: int = 10,
        *,
        loss: str = "frobenius",
        n_bins: int = 15,
        triples: float = 1.0,
        normalize: bool = False,
        n_terms: int = 400,
        floor: float = 1e-5,
        kinds: Mapping[str, str] | None = None,
        n_init: int = 3,
        max_iter: int = 500,
        tol: float = 1e-5,
        random_state: Seed = None,
    ) -> None:
        self.n_components = n_components
        self.loss = loss
        self.n_bins = n_bins
        self.triples = triples
        self.normalize = normalize
        self.n_terms = n_terms
        self.floor = floor
        self.kinds = kinds
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def sample(self, n_samples: int = 1, random_state: Seed = None) -> Any:
        """Draw rows, in the frame type that was fitted; only with ``normalize=True``.

        Without it the score is not a density, so it has no samples. Values come from inverse distribution functions
        on a fine grid.
        """
        check_is_fitted(self, "schema_")
        if not self.normalize:
            raise InputError(
                "The score of CPD3 as published does not integrate to one, so it cannot be sampled; fit with "
                "normalize=True to sample."
            )
        rng = generator(random_state)
        component = rng.choice(len(self.weights_), size=check_integer("n_samples", n_samples, 0), p=self.weights_)
        columns = [conditionals.sample(component, rng) for conditionals in self._conditionals]
        return decode(np.column_stack(columns), self.schema_)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("n_bins", self.n_bins, 2)
        check_integer("n_terms", self.n_terms, self.n_bins + 1)
        if not check_real("floor", self.floor) > 0:
            raise InputError(f"`floor` must be a positive number; got {self.floor!r}.")

    def _fit(self, rows: FloatArray, schema: Schema, profile: Profile) -> None:  # noqa: ARG002  # has its own bins
        columns = [self._binned(variable, rows[:, n]) for n, variable in enumerate(schema)]
        axes = [axis for axis, _, _ in columns]
        codes = np.column_stack([codes for _, codes, _ in columns]).astype(code_dtype(axes))
        marginals = SubsetMarginals.from_codes(codes, schema, axes, spread_triples(len(axes), self.triples))
        solution = self._best_run(marginals, "bins")
        self.weights_, self.masses_ = solution.value.weights, solution.value.coefficients
        self.edges_ = tuple(edges for _, _, edges in columns)
        self._conditionals = tuple(map(self._conditional, axes, self.edges_, self.masses_))
        record(self, solution)

    def _binned(self, variable: Variable, column: FloatArray) -> tuple[Axis, AnyArray, FloatArray | None]:
        """Return axis and codes of a column, and the edges of a continuous one."""
        if variable.kind is not Kind.CONTINUOUS:
            states = state_axis(variable, column)
            return states, states.index(column), None
        edges = checked_edges(variable.name, column[~np.isnan(column)], self.n_bins)
        # only the axis's number of bins is used; the codes decide which side of a bin is closed
        return BinnedAxis(edges[1:-1]), bin_codes(column, edges), edges

    def _conditional(self, axis: Axis, edges: FloatArray | None, masses: FloatArray) -> Conditionals:
        if edges is None:
            return StateConditionals(axis.values, masses, self.floor, self.normalize)  # type: ignore[attr-defined]
        return SincConditionals(edges, masses, self.n_terms, self.floor, self.normalize)

    def _logpdf(self, rows: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):  # a component of weight zero adds nothing
            total = np.tile(np.log(self.weights_), (len(rows), 1))
        for n, conditionals in enumerate(self._conditionals):
            total += conditionals.log(rows[:, n])
        return np.asarray(logsumexp(total, axis=1))
