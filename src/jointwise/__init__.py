"""jointwise: the joint probability of a table, learned from its pairs of columns, and exact answers about it.

Fit with :class:`JUPAD` (or :class:`JUPADClassifier`, :class:`JUPADImputer`) and ask its ``density_``, a
:class:`JointDensity`. Tables that never meet in one place are counted where they are: :class:`Profile` and
:class:`PairwiseMarginals` add up. :class:`Dictionary` writes down the atoms of a column by hand.
"""

from jointwise.dictionary import Dictionary
from jointwise.estimators import JUPAD, JUPADClassifier, JUPADImputer
from jointwise.joint import JointDensity
from jointwise.marginals import PairwiseMarginals, Profile

__version__ = "0.1.0"

__all__ = [
    "JUPAD",
    "Dictionary",
    "JUPADClassifier",
    "JUPADImputer",
    "JointDensity",
    "PairwiseMarginals",
    "Profile",
    "load",
]

load = JointDensity.load


def __dir__() -> list[str]:
    return __all__
