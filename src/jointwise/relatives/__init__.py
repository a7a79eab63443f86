"""The methods that JUPAD builds on or is compared with, behind one face: fit, score_samples, sample where defined.

Densities of numbers:

- :class:`GaussianMixtureDensity`: Gaussian mixtures, their number fixed, by BIC, or best in hindsight
- :class:`KernelDensityEstimate`: kernels, the bandwidth by cross-validation

Any table:

- :class:`IndependenceDensity`: each column on its own, the baseline
"""

from jointwise.relatives.gaussian_mixture import GaussianMixtureDensity
from jointwise.relatives.independence import IndependenceDensity
from jointwise.relatives.kernel import KernelDensityEstimate

__all__ = ["GaussianMixtureDensity", "IndependenceDensity", "KernelDensityEstimate"]


def __dir__() -> list[str]:
    return __all__
