"""The joint density and what can be asked of it.

:class:`JointDensity` is the object users hold. Its arithmetic on encoded values is that of an
:class:`~jointwise.joint.expert.Expert`: a :class:`~jointwise.joint.product.ProductMixture`, a
:class:`~jointwise.joint.block.BlockMixture`, whose components are Gaussian over some columns, a
:class:`~jointwise.joint.forest.ForestMixture`, whose components are trees, or a
:class:`~jointwise.joint.sum.WeightedSum` of experts of any kinds. The modules ``block_*`` and ``forest_*`` each answer
one question of a Gaussian block or of trees, and ``window`` integrates Gaussian vectors over boxes.
:class:`~jointwise.joint.margin.Margin` is the law of one variable,
:class:`~jointwise.joint.conditionals.Conditionals` its law in each of many rows. ``events``, ``conditioning``,
``crosstab``, ``information``, ``prediction``, ``check`` and ``serialization`` each answer one kind of question.
:class:`ClassModel` is a density with all else that predicting a class needs.
"""

from jointwise.joint.check import Check
from jointwise.joint.classes import ClassModel
from jointwise.joint.density import JointDensity
from jointwise.joint.expert import Expert
from jointwise.joint.findings import Finding
from jointwise.joint.information import Estimate
from jointwise.joint.product import ProductMixture
from jointwise.joint.sum import WeightedSum

__all__ = ["Check", "ClassModel", "Estimate", "Expert", "Finding", "JointDensity", "ProductMixture", "WeightedSum"]
