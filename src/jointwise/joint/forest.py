r"""A mixture whose components are trees over the states of the columns.

.. math:: f(x) = \sum_r \lambda_r \sum_s \prod_n p_r(s_n \mid s_{parent_r(n)}) \, d_{n, s_n}(x_n)

Each column n has states; state s emits the atom :math:`d_{n,s}` of the column's dictionary. Each component has a tree of
its own, which says on which other column the states of a column depend.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from jointwise._typing import FloatArray
from jointwise.dictionary import Dictionary
from jointwise.exceptions import InputError
from jointwise.joint.expert import Expert
from jointwise.joint.forest_tree import Tree
from jointwise.joint.simplex import simplex


@dataclass(frozen=True, eq=False)
class ForestMixture(Expert):
    """Weights, dictionaries and trees of a mixture of trees.

    Parameters
    ----------
    weights : array of shape (F,)
        Mixing weights, on the simplex.
    dictionaries : sequence of N Dictionary
        The atoms of each variable, one for each of its states.
    trees : sequence of F Tree
        Each has every variable once.
    """

    KIND: ClassVar[str] = "forest"

    weights: FloatArray
    dictionaries: tuple[Dictionary, ...]
    trees: tuple[Tree, ...]

    def __post_init__(self) -> None:
        weights = simplex(self.weights, "weights", 1)
        dictionaries, trees = tuple(self.dictionaries), tuple(self.trees)
        if not dictionaries or not all(isinstance(d, Dictionary) for d in dictionaries):
            raise InputError("A mixture of trees needs a Dictionary for each of one or more variables.")
        if len(trees) != len(weights) or not all(isinstance(tree, Tree) for tree in trees):
            raise InputError(f"A mixture of trees needs a Tree for each of the {len(weights)} weights.")
        for r, tree in enumerate(trees):
            if tree.n_variables != len(dictionaries):
                raise InputError(f"trees[{r}] has {tree.n_variables} variables; there are {len(dictionaries)}.")
            for n, (node, d) in enumerate(zip(tree.nodes, dictionaries, strict=True)):
                if tree.states[node] != d.n_atoms:
                    raise InputError(
                        f"trees[{r}] has {tree.states[node]} states for variable {n}, whose dictionary has {d.n_atoms} "
                        "atoms; each state needs one."
                    )
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "dictionaries", dictionaries)
        object.__setattr__(self, "trees", trees)

    @property
    def n_variables(self) -> int:
        """Number of variables N."""
        return len(self.dictionaries)
