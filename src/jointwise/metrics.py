"""The distance of an estimated density from the truth, and its total mass.

>>> from jointwise import JUPAD
>>> from jointwise.datasets import hybrid
>>> law = hybrid(rng=0)
>>> model = JUPAD(8, method="pairs", kinds={"x3": "categorical"}, random_state=0).fit(law.sample(1000, rng=1))
>>> mean_absolute_log_ratio(model.score_samples, law.logpdf, law.sample(1000, rng=2)) < 0.5
True
>>> mass = total_mass(model.score_samples, covering_proposal(law), 20_000, rng=0)
>>> abs(mass.value - 1) < 4 * mass.error
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jointwise._checks import check_integer, shown
from jointwise._typing import FloatArray
from jointwise.dictionary import Dictionary
from jointwise.exceptions import InputError
from jointwise.joint.density import JointDensity
from jointwise.joint.information import Estimate
from jointwise.joint.product import ProductMixture
from jointwise.tables.variables import Kind

# Default share of each variable beyond each end of the box of a covering proposal.
TAIL = 1e-5
# Share of the uniform law in each conditional of a covering proposal.
UNIFORM_SHARE = 0.1

LogDensity = Callable[[Any], FloatArray]


def mean_absolute_log_ratio(estimate: LogDensity, truth: LogDensity, points: Any) -> float:
    r"""Return the paper's distance D, the mean of :math:`|\log \hat f(x_i) - \log f(x_i)|` over points drawn from f.

    It is zero for the truth, and infinite if the estimate has no density at a point. The mean of the plain log ratio
    is a divergence only for an estimate of total mass one, and rewards a larger mass; D does not.

    Parameters
    ----------
    estimate, truth : callable
        Log-densities of rows, such as ``model.score_samples`` and ``law.logpdf``.
    points : table of n rows

    Examples
    --------
    >>> from jointwise.datasets import laplacians
    >>> law = laplacians(rng=0)
    >>> mean_absolute_log_ratio(law.logpdf, law.logpdf, law.sample(10, rng=0))
    0.0
    """
    return float(np.mean(np.abs(estimate(points) - truth(points))))


def total_mass(
    logpdf: LogDensity, proposal: JointDensity, n: int, rng: np.random.Generator | int | None = None
) -> Estimate:
    r"""Estimate the integral of a density over the support of a proposal, by importance sampling.

    .. math:: \int \hat f = E_{x \sim g} [\hat f(x) / g(x)]

    The estimate is unbiased for any proposal g. Its standard error is reliable only if g is not much smaller than
    :math:`\hat f` anywhere: see :func:`covering_proposal`.

    Parameters
    ----------
    logpdf : callable
        Log-density of rows, with respect to the same base measure as the proposal's.
    proposal : JointDensity
        The law g to draw from.
    n : int
        Number of draws.
    rng : numpy.random.Generator, int or None

    Returns
    -------
    Estimate
        The mass and its standard error.

    Examples
    --------
    >>> from jointwise.datasets import laplacians
    >>> law = laplacians(rng=0)
    >>> found = total_mass(law.logpdf, covering_proposal(law), 20_000, rng=0)
    >>> abs(found.value - 1) < 5 * found.error
    True
    """
    n = check_integer("n", n, 2)
    points = proposal.sample(n, rng=np.random.default_rng(rng))
    ratios = np.exp(logpdf(points) - proposal.logpdf(points))
    return Estimate(float(ratios.mean()), float(ratios.std(ddof=1) / np.sqrt(n)), "monte carlo")


def covering_proposal(truth: JointDensity, tail: float = TAIL) -> JointDensity:
    r"""Return a law with density wherever an estimate of ``truth`` may have mass, inside a box.

    Every conditional of the truth is mixed with the uniform law of the box,

    .. math:: g(x) = \sum_r \lambda_r \prod_n \bigl((1 - \epsilon) f_n(x_n \mid r) + \epsilon U_n(x_n)\bigr),

    then half and half with the same for the product of the truth's margins, and the result is cut to the box. This
    covers estimates with floors, ripples or components that the truth does not have, and f / g is at most
    2 (1 - epsilon)^{-N}. The box leaves out a share of `tail` of each variable at each end; mass beyond it, which is
    infinite for an estimate with a floor, is not seen.

    Parameters
    ----------
    truth : JointDensity
        Has continuous variables without spikes, and categorical ones, only.
    tail : float
        Share of each variable beyond each end of the box.
    """
    columns = [_covering(truth, n, tail) for n in range(len(truth.schema))]
    coefficients, dictionaries, box = zip(*columns, strict=True)
    weights = np.append(truth.mixture.weights, 1.0) / 2
    covering = JointDensity(truth.schema, ProductMixture(weights, coefficients, dictionaries))
    event = {name: ends for name, ends in zip(truth.names, box, strict=True) if ends is not None}
    return covering.condition(event) if event else covering


def _covering(truth: JointDensity, n: int, tail: float) -> tuple[FloatArray, Dictionary, tuple[float, float] | None]:
    """Return coefficients and atoms of one variable of the proposal, and the ends of its box."""
    variable, mixture = truth.schema.variables[n], truth.mixture
    dictionary, own = mixture.factor(n)
    own = np.column_stack([own, own @ mixture.weights])  # last: the margin
    if variable.categories is not None:
        n_categories = len(variable.categories)
        uniform = np.full((n_categories, own.shape[1]), UNIFORM_SHARE / n_categories)
        return np.vstack([(1 - UNIFORM_SHARE) * own, uniform]), dictionary + Dictionary.categories(n_categories), None
    if variable.kind is not Kind.CONTINUOUS or variable.spikes:
        raise InputError(
            f"covering_proposal takes continuous variables without spikes and categorical ones; "
            f"{shown(variable.name)} is neither. Write a proposal that covers it."
        )
    low, high = (float(end) for end in truth.quantile(variable.name, [tail, 1 - tail]))
    wide = np.vstack([(1 - UNIFORM_SHARE) * own, np.full((1, own.shape[1]), UNIFORM_SHARE)])
    return wide, dictionary + Dictionary.uniforms([low, high]), (low, high)
