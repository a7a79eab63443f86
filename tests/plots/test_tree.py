"""The dependence tree: the right edges, as wide as their information, and labels that do not meet."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.patches import PathPatch
from tests.plots.cases import mixed

from jointwise import JointDensity
from jointwise.dictionary import Dictionary
from jointwise.exceptions import InputError
from jointwise.joint import ProductMixture
from jointwise.joint.forest import ForestMixture
from jointwise.joint.forest_information import pair_information, state_pairs, strongest_tree
from jointwise.joint.forest_tree import Tree
from jointwise.joint.sum import mixed as mixed_experts
from jointwise.plots import plot_tree
from jointwise.tables.variables import Schema, Variable

POINTS = Dictionary.points(np.arange(3.0))


def random_density(n, seed=0, n_trees=1, reach=6, least=0.3):
    """Trees over n columns with long names; each table mixes a permutation with noise."""
    rng = np.random.default_rng(seed)
    trees = []
    for _ in range(n_trees):
        parents = [-1, *(int(rng.integers(max(0, k - reach), k)) for k in range(1, n))]
        tables = [rng.dirichlet(np.ones(3) * 5, 1)]
        for _ in parents[1:]:
            share = rng.uniform(least, 0.9)
            tables.append(share * np.eye(3)[rng.permutation(3)] + (1 - share) * rng.dirichlet(np.ones(3) * 5, 1))
        trees.append(Tree(rng.permutation(n), parents, tables))
    schema = Schema(tuple(Variable(f"column number {k}", "integer") for k in range(n)))
    return JointDensity(schema, ForestMixture(np.full(n_trees, 1 / n_trees), [POINTS] * n, trees))


def edges_of(tree):
    return {frozenset((int(tree.variables[v]), int(tree.variables[p]))) for v, p in enumerate(tree.parents) if p >= 0}


def widths(ax):
    return np.array([patch.get_linewidth() for patch in ax.patches if isinstance(patch, PathPatch)])


# ---- what is drawn -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_a_single_tree_is_found_again(seed):
    density = random_density(9, seed)
    found = {frozenset(edge) for edge in strongest_tree(pair_information(density.mixture)).tolist()}
    assert found == edges_of(density.mixture.trees[0])


def test_information_is_that_of_the_pairs():
    density = random_density(5, n_trees=3)
    found = pair_information(density.mixture)
    for a in range(5):
        for b in range(a):
            expected = density.mutual_information(density.names[a], density.names[b]).value
            assert found[a, b] == found[b, a] == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert not found.diagonal().any()


def test_pairs_of_states_with_hidden_nodes_and_several_roots():
    noisy = [[0.9, 0.1], [0.2, 0.8]]
    tree = Tree([-1, 1, 2, 0], [-1, 0, 0, -1], ([[0.4, 0.6]], noisy, noisy, [[0.3, 0.7]]))
    f = ForestMixture([1.0], [Dictionary.points([0.0, 1.0])] * 3, [tree])
    points = [np.array([0.0, 1.0])] * 2
    joint = state_pairs(tree)
    for a in range(3):
        for b in range(3):
            block = joint[2 * a : 2 * a + 2, 2 * b : 2 * b + 2]
            if a != b:
                np.testing.assert_allclose(block, f.marginal([a, b]).pdf_table(points), atol=1e-14)


def test_edges_are_as_wide_as_their_information():
    density = random_density(12, n_trees=2)
    information = pair_information(density.mixture)
    edges = strongest_tree(information)
    ax = plot_tree(density)
    strength = np.sort(information[edges[:, 0], edges[:, 1]])
    drawn = np.sort(widths(ax))
    np.testing.assert_allclose(np.diff(drawn) / np.ptp(drawn), np.diff(strength) / np.ptp(strength), atol=1e-9)
    names = {label.get_text().split("  ")[0] for label in ax.texts}
    assert names == set(density.names)
    assert sum("  " in label.get_text() for label in ax.texts) == 11  # all but the root have a number


def test_independent_columns_stand_apart():
    law = [[0.2, 0.3, 0.5]]
    tree = Tree([0, 1, 2], [-1, 0, -1], (law, np.repeat(law, 3, axis=0), law))
    schema = Schema(tuple(Variable(name, "integer") for name in "abc"))
    ax = plot_tree(JointDensity(schema, ForestMixture([1.0], [POINTS] * 3, [tree])))
    assert not len(widths(ax))
    assert {label.get_text() for label in ax.texts} == set("abc")


def test_a_sum_shows_its_trees():
    density = random_density(6)
    f = density.mixture
    alone = ProductMixture([1.0], [f.margin(n).weights[:, None] for n in range(f.n_variables)], f.dictionaries)
    both = JointDensity(density.schema, mixed_experts([f, alone], [0.5, 0.5]))
    np.testing.assert_allclose(widths(plot_tree(both)), widths(plot_tree(density)))


# ---- how it looks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "reach"), [(5, 3), (14, 6), (30, 2), (60, 25), (60, 1)])
def test_labels_do_not_meet(n, reach):
    ax = plot_tree(random_density(n, reach=reach, least=0.5))
    figure = ax.figure
    figure.canvas.draw()
    boxes = np.array([label.get_window_extent().extents for label in ax.texts])  # left, bottom, right, top
    assert len(boxes) == n
    left, bottom, right, top = boxes.T
    apart = (right[:, None] <= left) | (left[:, None] >= right) | (top[:, None] <= bottom) | (bottom[:, None] >= top)
    np.fill_diagonal(apart, val=True)
    assert apart.all()
    assert (left >= 0).all()
    assert (right <= figure.bbox.width).all()
    assert (bottom >= 0).all()
    assert (top <= figure.bbox.height).all()
    assert max(figure.get_size_inches()) <= 16


def test_it_draws_into_given_axes():
    _, (first, second) = plt.subplots(1, 2)
    density = random_density(5)
    assert plot_tree(density, second) is second
    assert not first.texts
    assert len(second.texts) == 5


def test_dollar_signs_and_long_names():
    schema = Schema(tuple(Variable(name, "integer") for name in ("$x$ in $", "b" * 80)))
    noisy = 0.8 * np.eye(3) + 0.2 / 3
    tree = Tree([0, 1], [-1, 0], (np.full((1, 3), 1 / 3), noisy))
    ax = plot_tree(JointDensity(schema, ForestMixture([1.0], [POINTS] * 2, [tree])))
    ax.figure.canvas.draw()
    assert len(ax.texts) == 2


# ---- errors ------------------------------------------------------------------------------------------------


def test_a_density_without_trees_is_refused():
    with pytest.raises(InputError, match=r"this one has ProductMixture only\. Fit one with TreeMixture"):
        plot_tree(mixed())
    with pytest.raises(InputError, match="A plot needs a JointDensity"):
        plot_tree(3)


def test_too_many_states_are_refused(monkeypatch):
    monkeypatch.setattr("jointwise.joint.forest_information.MOST_STATES", 10)
    with pytest.raises(InputError, match="At most 10 states of all variables can be compared, got 15"):
        plot_tree(random_density(5))
