"""jointwise: the joint probability of a table, learned from its pairs of columns, and exact answers about it.

Fit with :class:`JUPAD` (or :class:`JUPADClassifier`, :class:`JUPADImputer`) and ask its ``density_``, a
:class:`JointDensity`. A classifier's ``class_model_``, a :class:`ClassModel`, is all that tells classes, for a file.
Tables that never meet in one place are counted where they are: :class:`Profile` and :class:`PairwiseMarginals` add up.
:class:`Dictionary` writes down the atoms of a column by hand.
"""

from typing import TYPE_CHECKING, Any

from jointwise.dictionary import Dictionary
from jointwise.joint import ClassModel, JointDensity
from jointwise.marginals import PairwiseMarginals, Profile

if TYPE_CHECKING:
    from jointwise.estimators import JUPAD, JUPADClassifier, JUPADImputer

__version__ = "0.1.0"

__all__ = [
    "JUPAD",
    "ClassModel",
    "Dictionary",
    "JUPADClassifier",
    "JUPADImputer",
    "JointDensity",
    "PairwiseMarginals",
    "Profile",
    "load",
]

load = JointDensity.load


def __getattr__(name: str) -> Any:
    """Import the estimators when they are first asked for: they load scikit-learn, which answers do not need."""
    if name in __all__:
        from jointwise import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module 'jointwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
