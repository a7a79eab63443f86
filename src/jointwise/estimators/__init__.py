"""scikit-learn estimators over the joint density.

- :class:`JUPAD` for the density itself: scores, samples, and ``density_`` for every other question
- :class:`JUPADClassifier` for a class given the rest
- :class:`JUPADImputer` to fill gaps
"""

from jointwise.estimators.classifier import JUPADClassifier
from jointwise.estimators.imputer import JUPADImputer
from jointwise.estimators.jupad import JUPAD

__all__ = ["JUPAD", "JUPADClassifier", "JUPADImputer"]
