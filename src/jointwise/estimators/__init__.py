"""Estimators: scikit-learn's face of the library.

:class:`JUPAD` learns the joint density of a table. :class:`JointClassifier` and :class:`JointImputer` hold such an
estimator: the class is one more column, and gaps are filled.
"""

from jointwise.estimators.classifier import JointClassifier
from jointwise.estimators.imputer import JointImputer
from jointwise.estimators.jupad import JUPAD

__all__ = ["JUPAD", "JointClassifier", "JointImputer"]
