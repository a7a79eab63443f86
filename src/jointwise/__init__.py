"""jointwise: the joint probability of a table, and exact answers about it.

Fit with :class:`JointEstimator` (or :class:`JointClassifier`, :class:`JointImputer`, which hold one) and ask its
``density_``, a :class:`JointDensity`. It stacks experts, which can also be fitted alone: :class:`JUPAD`, a mixture of
products, :class:`GaussianBlocks`, for correlated numbers, and :class:`TreeMixture`, for columns that depend on their
neighbours. A classifier's ``class_model_``, a :class:`ClassModel`, is what its file holds.

Tables that never meet in one place are counted where they are: :class:`Profile` and :class:`PairwiseMarginals` add up.
:class:`Dictionary` writes down the atoms of a column by hand.
"""

from importlib import import_module

TYPE_CHECKING = False  # `typing` itself would be one more thing to wait for
if TYPE_CHECKING:
    from typing import Any

    from jointwise.dictionary import Dictionary
    from jointwise.estimators import (
        JUPAD,
        GaussianBlocks,
        JointClassifier,
        JointEstimator,
        JointImputer,
        TreeMixture,
    )
    from jointwise.joint import ClassModel, JointDensity
    from jointwise.marginals import PairwiseMarginals, Profile

    load = JointDensity.load

__version__ = "0.1.0"

__all__ = [
    "JUPAD",
    "ClassModel",
    "Dictionary",
    "GaussianBlocks",
    "JointClassifier",
    "JointDensity",
    "JointEstimator",
    "JointImputer",
    "PairwiseMarginals",
    "Profile",
    "TreeMixture",
    "load",
]

_HOMES = {
    "ClassModel": "joint",
    "Dictionary": "dictionary",
    "GaussianBlocks": "estimators",
    "JUPAD": "estimators",
    "JointClassifier": "estimators",
    "JointEstimator": "estimators",
    "JointImputer": "estimators",
    "JointDensity": "joint",
    "PairwiseMarginals": "marginals",
    "Profile": "marginals",
    "TreeMixture": "estimators",
}


def __getattr__(name: str) -> "Any":
    """Import a name or a part when it is first asked for: estimators load scikit-learn, which answers do not need."""
    if name == "load":
        return import_module("jointwise.joint").JointDensity.load
    if name in _HOMES:
        return getattr(import_module(f"jointwise.{_HOMES[name]}"), name)
    if not name.startswith("_"):
        try:
            return import_module(f"jointwise.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"jointwise.{name}":
                raise
    raise AttributeError(f"module 'jointwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
