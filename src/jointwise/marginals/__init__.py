"""Marginals: what passes over the rows leave behind, small values that add up.

`Profile` is the first pass (types, categories, distribution of each column) and gives schema and axes;
`PairwiseMarginals` is the second (counts of all pairs on those axes), `SubsetMarginals` the same for chosen
subsets such as triples. All are the same, bit for bit, however the rows were split. `CodedRows` keeps the rows
themselves, as bin numbers, for as many passes as EM needs.
`ValueSketch` is the part of a profile that knows the distribution of one numeric column.
"""

from jointwise.marginals.coded import CodedRows, Rows
from jointwise.marginals.pairwise import PairwiseMarginals
from jointwise.marginals.profile import Profile
from jointwise.marginals.sketch import ValueSketch
from jointwise.marginals.subsets import SubsetMarginals

__all__ = ["CodedRows", "PairwiseMarginals", "Profile", "Rows", "SubsetMarginals", "ValueSketch"]
