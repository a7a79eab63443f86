"""Plain forms that nobody wrote: `from_dict` of everything that has one."""

import json
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st
from tests.fuzz import material, nasty
from tests.fuzz.case import Case, law, refused

from jointwise import Dictionary, PairwiseMarginals, Profile
from jointwise.axes import Axis, BinnedAxis, DiscreteAxis
from jointwise.families import family_from_dict
from jointwise.joint.forest_tree import Tree
from jointwise.tables.variables import Schema, Variable

# Some readers are functions and some are classes.
READERS = {
    "variable": Variable.from_dict,
    "schema": Schema.from_dict,
    "axis": Axis.from_dict,
    "family": family_from_dict,
    "dictionary": Dictionary.from_dict,
    "tree": Tree.from_dict,
    "marginals": PairwiseMarginals.from_dict,
}
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@cache
def good() -> dict[str, list[Any]]:
    """Return trees that can be read, by reader."""
    densities = material.densities()
    dictionaries = [d.to_dict() for density in densities for d in density.mixture.dictionaries]
    columns = {"x": [0.0, 1.5, 2.5, 4.0, 9.0], "k": [1, 2, 2, 3, 1], "c": ["a", "b", "a", "b", "a"]}
    profile = Profile.of(columns)
    schema = profile.schema()
    marginals = PairwiseMarginals.of(columns, schema, profile.axes(schema, 4))
    return {
        "variable": [variable.to_dict() for density in densities for variable in density.schema],
        "schema": [density.schema.to_dict() for density in densities],
        "axis": [BinnedAxis([0.0, 1.0], [0.5]).to_dict(), DiscreteAxis([0.0, 2.0]).to_dict()],
        "family": [family for d in dictionaries for family in d["families"]],
        "dictionary": dictionaries,
        "tree": [tree.to_dict() for tree in material.trees().mixture.trees],
        "marginals": [marginals.to_dict()],
    }


def run(case: Case) -> None:
    """Read a tree that was changed, or one that is none of ours."""
    name = case.rng.choice(list(READERS))
    if case.rng.random() < 0.15:
        tree = case.drawn(TREES)
    else:
        tree = nasty.changed_tree(case.rng, case.rng.choice(good()[name]))
    case.note(f"{name}: {str(tree)[:500]!a}")
    gone, made = refused(READERS[name], tree)
    if not gone:
        use(name, made)


def use(name: str, made: Any) -> None:
    """What was read can be written, read again, and used."""
    tree = made.to_dict()
    again = READERS[name](tree)
    law(_text(again.to_dict()) == _text(tree), "what is read again is something else")
    refused(repr, made)
    if name in {"family", "dictionary"}:
        points = np.array([-1.0, 0.0, 0.5, 3.0])
        law(not np.isnan(made.cdf(points)).any(), "a cumulative probability is not a number")
        law(not np.isnan(made.logpdf(points)).any(), "a log-density is not a number")
    if name == "tree":
        law(all(np.isclose(p.sum(), 1.0) for p in made.marginals), "probabilities do not sum to one")
    if name == "axis":
        law(made.index(np.array([0.0, np.nan])).max() <= made.n_bins, "a bin beyond the last")
    if name == "marginals":
        law(np.isfinite(made.counts).all(), "counts are not finite")
        refused(lambda: [made.marginal(each) for each in made.schema.names])


def _text(tree: Any) -> str:
    return json.dumps(tree, default=lambda each: np.asarray(each).tolist(), sort_keys=True)
