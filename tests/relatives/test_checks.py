"""scikit-learn's checks of the relatives that take any table of numbers, and the list of public names."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import jointwise.relatives
from jointwise.relatives import (
    CPD3,
    CharacteristicDensity,
    GaussianMixtureDensity,
    IndependenceDensity,
    KernelDensityEstimate,
)

# The discrete methods are left out: they refuse the fractions that the checks use.
ESTIMATORS = [
    IndependenceDensity(),
    GaussianMixtureDensity(1),
    KernelDensityEstimate(bandwidth=1.0),
    CharacteristicDensity(2, n_frequencies=2, n_init=1),
    CPD3(2, n_init=1, tol=0.1),
]
# These checks use tables of two columns.
TWO_COLUMNS = [
    "check_estimators_overwrite_params",
    "check_estimators_fit_returns_self",
    "check_readonly_memmap_input",
    "check_fit_idempotent",
    "check_fit_check_is_fitted",
    "check_n_features_in",
]


def expected_failures(estimator):
    triples = isinstance(estimator, CharacteristicDensity | CPD3)
    return dict.fromkeys(TWO_COLUMNS, "needs triples, and the table has two columns") if triples else {}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_check(estimator, check):
    check(estimator)


def test_public_names_are_pinned():
    assert sorted(jointwise.relatives.__all__) == [
        "CPD3", "CharacteristicDensity", "CoupledPMF", "GaussianMixtureDensity", "IndependenceDensity",
        "KernelDensityEstimate", "PairwisePMF", "ProjectionPMF",
    ]  # fmt: skip
    assert dir(jointwise.relatives) == sorted(jointwise.relatives.__all__)
