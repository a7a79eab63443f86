"""Marginals: the results of passes over the rows, small values that add up.

`Profile` is the first pass (type, categories and distribution of each column); it gives the schema and the axes.
`PairwiseMarginals` is the second pass (counts of all pairs on those axes), and `SubsetMarginals` counts chosen subsets,
such as triples. Any split of the rows gives the same sum, bit for bit.
"""

from jointwise.marginals.pairwise import PairwiseMarginals
from jointwise.marginals.profile import Profile
from jointwise.marginals.subsets import SubsetMarginals

__all__ = ["PairwiseMarginals", "Profile", "SubsetMarginals"]
