"""scikit-learn's own checks of the relatives that take any table of numbers, and the list of public names."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import jointwise.relatives
from jointwise.relatives import GaussianMixtureDensity, IndependenceDensity, KernelDensityEstimate

# The discrete methods are not in the list: the checks feed fractions, which they refuse.
ESTIMATORS = [IndependenceDensity(), GaussianMixtureDensity(1), KernelDensityEstimate(bandwidth=1.0)]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check(estimator, check):
    check(estimator)


def test_public_names_are_pinned():
    assert sorted(jointwise.relatives.__all__) == [
        "GaussianMixtureDensity", "IndependenceDensity", "KernelDensityEstimate",
    ]  # fmt: skip
    assert dir(jointwise.relatives) == sorted(jointwise.relatives.__all__)
