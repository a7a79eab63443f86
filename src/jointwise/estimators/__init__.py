"""Estimators: scikit-learn's face of the library.

:class:`JointEstimator` learns the joint density of any table, as a weighted sum of experts. Three of them can be used
alone: :class:`JUPAD` is a mixture of products, the components of :class:`GaussianBlocks` are Gaussian over columns that
are correlated, and those of :class:`TreeMixture` are trees, in which a column depends on a neighbour.
:class:`JointClassifier` and :class:`JointImputer` hold such an estimator: the class is one more column, and gaps are
filled.
"""

from jointwise.estimators.classifier import JointClassifier
from jointwise.estimators.gaussian_blocks import GaussianBlocks
from jointwise.estimators.imputer import JointImputer
from jointwise.estimators.joint_estimator import JointEstimator
from jointwise.estimators.jupad import JUPAD
from jointwise.estimators.tree_mixture import TreeMixture

__all__ = ["JUPAD", "GaussianBlocks", "JointClassifier", "JointEstimator", "JointImputer", "TreeMixture"]
