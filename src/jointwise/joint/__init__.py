"""The joint density and what can be asked of it.

:class:`JointDensity` is the object users hold; :class:`~jointwise.joint.product.ProductMixture` is its arithmetic on
encoded values, and :class:`~jointwise.joint.margin.Margin` the law of one variable; ``events``, ``conditioning``,
``crosstab``, ``information``, ``prediction``, ``check`` and ``serialization`` each answer one kind of question. :class:`ClassModel` is a density and all else that it takes to tell
the class of a row.
"""

from jointwise.joint.classes import ClassModel
from jointwise.joint.density import JointDensity
from jointwise.joint.expert import Expert
from jointwise.joint.findings import Check, Finding
from jointwise.joint.information import Estimate
from jointwise.joint.product import ProductMixture

__all__ = ["Check", "ClassModel", "Estimate", "Expert", "Finding", "JointDensity", "ProductMixture"]
