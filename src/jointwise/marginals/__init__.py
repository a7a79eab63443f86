"""Marginals: what passes over the rows leave behind, small values that add up.

`Profile` is the first pass (types, categories, distribution of each column) and gives schema and axes;
`PairwiseMarginals` is the second (counts of all pairs on those axes), `SubsetMarginals` the same for chosen
subsets such as triples. All are the same, bit for bit, however the rows were split.
`ValueSketch` is the part of a profile that knows the distribution of one numeric column.
"""

from jointwise.marginals.pairwise import PairwiseMarginals
from jointwise.marginals.profile import Profile
from jointwise.marginals.sketch import ValueSketch
from jointwise.marginals.subsets import SubsetMarginals

__all__ = ["PairwiseMarginals", "Profile", "SubsetMarginals", "ValueSketch"]
