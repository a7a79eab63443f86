"""Estimators: scikit-learn's face of the library.

:class:`JUPAD` learns the joint density of a table as a mixture of products, and :class:`GaussianBlocks` as one whose
components are Gaussian over columns that are correlated. :class:`JointClassifier` and :class:`JointImputer` hold such
an estimator: the class is one more column, and gaps are filled.
"""

from jointwise.estimators.classifier import JointClassifier
from jointwise.estimators.gaussian_blocks import GaussianBlocks
from jointwise.estimators.imputer import JointImputer
from jointwise.estimators.jupad import JUPAD

__all__ = ["JUPAD", "GaussianBlocks", "JointClassifier", "JointImputer"]
