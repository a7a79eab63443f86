"""scikit-learn's own checks, with no expected failures.

One check per estimator, of array API input, is skipped unless SCIPY_ARRAY_API=1 is in the environment before SciPy is
imported; it passes with it.
"""

from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.estimators.cases import make_classifier, make_imputer

from jointwise import JUPAD, GaussianBlocks, JointEstimator, TreeMixture

# Few components and starts: the checks ask for manners, not for accuracy, and run hundreds of fits.
SMALL = {"n_components": 3, "n_init": 1, "max_iter": 300}


EXPERTS = [("a", JUPAD(2, n_init=1)), ("b", GaussianBlocks(n_components=2))]
ESTIMATORS = [
    JUPAD(**SMALL), GaussianBlocks(n_components=3, max_iter=300), TreeMixture(3, alpha=3, gamma=10, n_states=8),
    JointEstimator(EXPERTS, max_iter=300), make_classifier(**SMALL), make_imputer(**SMALL),
    make_imputer(**SMALL, sample_posterior=True),
]  # fmt: skip


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check(estimator, check):
    check(estimator)
