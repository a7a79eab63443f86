"""The joint density and what can be asked of it.

:class:`JointDensity` is the object users hold; :class:`~jointwise.joint.mixture.ProductMixture` is its arithmetic on
encoded values; ``events``, ``moments``, ``information``, ``prediction``, ``check`` and ``serialization`` each answer
one kind of question.
"""

from jointwise.joint.density import JointDensity
from jointwise.joint.findings import Check, Finding
from jointwise.joint.information import Estimate
from jointwise.joint.mixture import ProductMixture

__all__ = ["Check", "Estimate", "Finding", "JointDensity", "ProductMixture"]
