"""Trees of atoms: states that overlap, from trees of bins; answers, choices, weights, gaps and checkpoints."""

import numpy as np
import pytest
from tests.fitting.trees.test_fit import edges_of
from tests.fitting.trees.test_states import COLUMNS, design_of

from jointwise import JointDensity, TreeMixture
from jointwise.exceptions import InputError
from jointwise.fitting.trees import TreeOptions, choose_trees, fit_trees
from jointwise.fitting.trees.choice import short_run
from jointwise.solvers import solve
from jointwise.solvers.trees_em import TreesEM


def waves(n, seed, n_columns=5, noise=0.2):
    """Return columns that are sines of the one before, with Gaussian noise."""
    rng = np.random.default_rng(seed)
    columns = [rng.standard_normal(n)]
    for _ in range(n_columns - 1):
        columns.append(np.sin(2 * columns[-1]) + noise * rng.standard_normal(n))
    return {f"x{k}": column for k, column in enumerate(columns)}


@pytest.mark.parametrize("name", COLUMNS)
def test_atoms_with_their_weights_are_the_fit_of_the_column(name):
    design, rows, _ = design_of({name: COLUMNS[name], "other": COLUMNS["normal"]})
    space = design.atoms(8, 8)
    atoms, coded = space.columns[0], rows.regrouped(space.space.axes)
    assert coded.marginal(0).sum() == rows.marginal(0).sum()
    if atoms is None:
        assert np.array_equal(space.emissions.tables[0], np.eye(space.bins.axes[0].n_bins))
        return
    table = atoms.states.groups
    assert np.allclose(table.sum(axis=1), 1)
    assert atoms.weights.sum() == pytest.approx(1)
    masses = np.exp(atoms.states.log_masses)
    assert np.allclose(atoms.weights @ table, masses / masses.sum(), atol=1e-6)
    spiked = design.columns[0].spiked(atoms.states.axis)
    assert ((table > 0).sum(axis=0)[spiked] == 1).all()  # a spike is a state of its own


def test_most_numbers_have_atoms():
    design, _, _ = design_of(COLUMNS)
    has_atoms = {name for name, c in zip(COLUMNS, design.atoms(8, 8).columns, strict=True) if c is not None}
    assert {"normal", "skewed", "spiked", "share", "large count"} <= has_atoms
    assert not {"count", "two values", "constant", "kinds", "many kinds"} & has_atoms


@pytest.mark.parametrize("n_components", [1, 3])
def test_the_objective_never_rises_and_trees_stay(n_components):
    data = {name: COLUMNS[name] for name in ("normal", "skewed", "spiked", "large count", "kinds", "few rows")}
    design, rows, _ = design_of(data)
    bins = design.space(8)
    coded = rows.regrouped(bins.axes)
    problem = bins.problem(coded, 3.0, 10.0)
    factors = short_run(problem, coded, n_components, np.random.default_rng(0))
    atoms = design.atoms(8, 8)
    start = atoms.start(factors, problem.known)
    smooth = atoms.problem(rows.regrouped(atoms.space.axes), problem, start.forest.parents)
    solution = solve(TreesEM(start, tol=0.0, fixed=True), smooth, max_steps=30)
    assert (np.diff(solution.history) <= 1e-10).all()
    assert np.array_equal(solution.value.forest.parents, factors.forest.parents)


def test_a_smooth_chain_is_found_and_beats_bins():
    train, test = waves(1500, 0), waves(2000, 1)
    bins, atoms, auto = (TreeMixture(1, states=s, random_state=0).fit(train) for s in ("bins", "atoms", "auto"))
    assert atoms.score(test) > bins.score(test) + 0.2
    assert auto.fit_.choice.n_atoms == atoms.fit_.choice.n_atoms > 0
    assert bins.fit_.choice.n_atoms == 0
    assert edges_of(bins.density_) == {(f"x{k}", f"x{k + 1}") for k in range(4)}
    assert "atoms of a column of numbers" in atoms.summary()


def test_sharp_edges_keep_bins():
    rng = np.random.default_rng(0)
    a = rng.uniform(size=3000)
    b = np.where(a < 0.37, rng.uniform(0, 0.5, 3000), rng.uniform(0.5, 1, 3000))
    assert TreeMixture(1, random_state=0).fit({"a": a, "b": b}).fit_.choice.n_atoms == 0


@pytest.fixture(scope="module")
def mixed():
    """Every kind of column, two trees of atoms."""
    names = ("normal", "skewed", "spiked", "share", "large count", "count", "kinds")
    data = {name: COLUMNS[name] for name in names} | {"copy": COLUMNS["normal"] + 0.3 * COLUMNS["skewed"]}
    model = TreeMixture(2, states="atoms", n_states=8, alpha=3, gamma=10, random_state=0).fit(data)
    return data, model.density_


def test_answers_agree_with_each_other(mixed):
    data, density = mixed
    some = {name: column[:50] for name, column in data.items()}
    assert np.isfinite(density.logpdf(some)).all()
    pair = density.marginal(["normal", "copy"])
    grid = np.linspace(-4, 8, 1201)
    table = pair.pdf({"normal": np.full(1201, 0.5), "copy": grid})
    one = density.marginal(["normal"])
    assert np.trapezoid(table, grid) == pytest.approx(float(one.pdf({"normal": [0.5]})[0]), rel=1e-2)
    given = density.condition({"normal": 0.5}).marginal(["copy"])
    assert np.allclose(given.pdf({"copy": grid}), table / one.pdf({"normal": [0.5]})[0], rtol=1e-6, atol=1e-9)
    assert given.cdf({"copy": [1.0]})[0] == pytest.approx(given.probability({"copy": (-np.inf, 1.0)}), abs=1e-9)
    assert density.probability({"spiked": 0.0}) == pytest.approx(np.mean(data["spiked"] == 0), abs=0.02)


def test_samples_have_the_moments(mixed):
    _, density = mixed
    drawn = density.sample(20_000, rng=0)
    for name in ("normal", "copy", "large count"):
        law = density.marginal([name])
        assert np.mean(drawn[name]) == pytest.approx(law.mean()[name], abs=4 * np.std(drawn[name]) / 141)
    assert np.isfinite(density.logpdf(drawn)).all()
    assert (drawn["share"] >= 0).all()
    assert (drawn["share"] <= 1).all()


def test_a_file_holds_it(mixed, tmp_path):
    data, density = mixed
    density.save(tmp_path / "model.jw")
    assert np.array_equal(JointDensity.load(tmp_path / "model.jw").logpdf(data), density.logpdf(data))


def test_weights_count_as_rows_and_gaps_are_welcome():
    data = waves(300, 2, 3)
    data["x1"][::7] = np.nan
    weights = np.random.default_rng(0).integers(1, 4, size=300)
    repeated = {name: np.repeat(column, weights) for name, column in data.items()}
    model = TreeMixture(2, states="atoms", n_states=8, alpha=1, gamma=3, random_state=0)
    by_weight = model.fit(data, sample_weight=weights).score(data)
    assert by_weight == pytest.approx(model.fit(repeated).score(data), abs=1e-6)


def test_a_resumed_fit_is_the_same(tmp_path):
    data = waves(200, 3, 3)
    _, rows, columns = design_of(data)
    given = {"states": "atoms", "n_states": 8, "alpha": 1.0, "gamma": 3.0, "max_iter": 20, "tol": 1e-9}
    whole = fit_trees(rows, columns.coarse, TreeOptions(2, **given), np.random.default_rng(0))
    options = TreeOptions(2, **given, checkpoint=tmp_path / "fit.resume")
    steps = 0

    def stop(*_):
        nonlocal steps
        steps += 1
        if steps == 30:  # in the run with atoms
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_trees(rows, columns.coarse, options, np.random.default_rng(0), stop)
    resumed = fit_trees(rows, columns.coarse, options, np.random.default_rng(0))
    X = rows.values()
    assert np.array_equal(resumed.density.mixture.logpdf(X), whole.density.mixture.logpdf(X))


def test_an_interrupted_fit_keeps_atoms():
    data = waves(200, 3, 3)
    _, rows, columns = design_of(data)
    options = TreeOptions(2, states="atoms", n_states=8, alpha=1.0, gamma=3.0, keep_on_interrupt=True)

    def stop(*_):
        raise KeyboardInterrupt

    found = fit_trees(rows, columns.coarse, options, np.random.default_rng(0), stop)
    assert np.isfinite(found.density.mixture.logpdf(rows.values())).all()


def test_what_has_no_atoms_keeps_bins():
    design, rows, _ = design_of({"kinds": COLUMNS["kinds"], "count": COLUMNS["count"]})
    choice = choose_trees(design, rows, TreeOptions(states="atoms"), np.random.default_rng(0))
    assert choice.n_atoms == 0
    with pytest.raises(InputError, match="states"):
        TreeOptions(states="splines")
    with pytest.raises(InputError, match="atoms"):
        TreeOptions("many", states="atoms")
