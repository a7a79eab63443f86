"""The methods that JUPAD builds on or is compared with, all with `fit`, `score_samples` and, where defined, `sample`.

Densities of numbers:

- :class:`CharacteristicDensity`: Fourier series from the characteristic functions of triples
- :class:`GaussianMixtureDensity`: Gaussian mixture; its number of components is given, chosen by BIC, or best in
  hindsight
- :class:`KernelDensityEstimate`: Gaussian kernels, the bandwidth by cross-validation

Joints of discrete columns:

- :class:`CoupledPMF`: from triples, by coupled tensor factorisation
- :class:`PairwisePMF`: from pairs, by successive projection, refined by divergence or by EM
- :class:`ProjectionPMF`: from 1-D marginals of random projections

Any table:

- :class:`CPD3`: from binned triples, by coupled tensor factorisation and sinc interpolation
- :class:`IndependenceDensity`: each column on its own, the baseline
"""

from jointwise.relatives.characteristic import CharacteristicDensity
from jointwise.relatives.coupled import CoupledPMF
from jointwise.relatives.cpd3 import CPD3
from jointwise.relatives.gaussian_mixture import GaussianMixtureDensity
from jointwise.relatives.independence import IndependenceDensity
from jointwise.relatives.kernel import KernelDensityEstimate
from jointwise.relatives.pairwise import PairwisePMF
from jointwise.relatives.projections import ProjectionPMF

__all__ = [
    "CPD3",
    "CharacteristicDensity",
    "CoupledPMF",
    "GaussianMixtureDensity",
    "IndependenceDensity",
    "KernelDensityEstimate",
    "PairwisePMF",
    "ProjectionPMF",
]


def __dir__() -> list[str]:
    return __all__
