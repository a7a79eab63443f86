"""JointEstimator: experts stacked by held-out rows."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import clone

from jointwise import JUPAD, GaussianBlocks, JointClassifier, JointEstimator, JointImputer, TreeMixture, load
from jointwise.estimators import gaussian_blocks, jupad
from jointwise.estimators.joint_estimator import _suits
from jointwise.exceptions import InputError
from jointwise.fitting import models, weighing
from jointwise.fitting.blocks import BlockChoice, choose_blocks
from jointwise.fitting.learners import Work
from jointwise.fitting.rows import fit_rows
from jointwise.fitting.trees import MOST_COLUMNS
from jointwise.fitting.weighing import CROSSTAB_ROWS, MOST_LOSS, by_crosstabs
from jointwise.joint.product import ProductMixture
from jointwise.solvers import Status

EXPERTS = [("products", JUPAD(3, n_init=1)), ("blocks", GaussianBlocks("none", n_components=2))]


def small(**parameters) -> JointEstimator:
    return JointEstimator(EXPERTS, random_state=0, **parameters)


def columns(n: int = 150, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    table = {"a": a, "b": a + 0.2 * rng.normal(size=n), "c": rng.exponential(size=n)}
    table["b"][::7] = np.nan
    return table | {"kind": np.where(a + rng.normal(size=n) > 0, "x", "y")}


@pytest.fixture(scope="module")
def fitted() -> JointEstimator:
    return small().fit(columns())


def test_the_density_is_the_weighted_sum_of_its_experts(fitted):
    fresh = columns(seed=1)
    weights = fitted.expert_weights_
    assert sum(weights.values()) == pytest.approx(1)
    parts = [np.log(weights[name]) + fit.density.logpdf(fresh) for name, fit in fitted.fit_.fits.items()]
    np.testing.assert_allclose(fitted.score_samples(fresh), logsumexp(parts, axis=0), rtol=1e-9)


def test_correlated_columns_go_to_the_blocks(fitted):
    held_out = {expert.name: expert.held_out for expert in fitted.fit_.experts}
    assert held_out["blocks"] > held_out["products"]
    assert fitted.expert_weights_["blocks"] > 0.5
    assert fitted.fit_.held_out >= max(held_out.values()) - 0.05


def test_threads_do_not_change_the_density(monkeypatch):
    """Experts, folds and models side by side, with threads that take turns as often as they can."""
    data, fresh = columns(120), columns(seed=1)
    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        side_by_side = JointEstimator(random_state=0).fit(data)
    finally:
        sys.setswitchinterval(switching)
    monkeypatch.setattr(models, "n_cores", lambda: 1)
    one_by_one = JointEstimator(random_state=0).fit(data)
    assert side_by_side.expert_weights_ == one_by_one.expert_weights_
    np.testing.assert_array_equal(side_by_side.score_samples(fresh), one_by_one.score_samples(fresh))


@pytest.mark.slow  # the example of the class fits them too
def test_automatic_experts():
    model = JointEstimator(random_state=0).fit(columns(80))
    assert list(model.expert_weights_) == ["jupad", "blocks_none", "blocks_joint", "blocks_scores", "trees"]
    assert sum(model.expert_weights_.values()) == pytest.approx(1)


def test_logarithms_are_for_positive_columns():
    rng = np.random.default_rng(0)
    size = np.exp(rng.normal(size=60))
    table = {"size": size, "weight": size * np.exp(0.1 * rng.normal(size=60)), "debt": rng.normal(size=60)}
    assert "blocks_log" in JointEstimator(random_state=0).fit(table).expert_weights_
    assert "blocks_log" not in JointEstimator(random_state=0).fit({**table, "size": -size}).expert_weights_


def test_one_search_serves_blocks_that_differ_in_their_warp_alone(monkeypatch):
    searched = []

    def counted(design, rows, options, *rest):
        searched.append((options.warp, options.nu))
        return choose_blocks(design, rows, options, *rest)

    monkeypatch.setattr(gaussian_blocks, "choose_blocks", counted)
    blocks = {"a": GaussianBlocks("none"), "b": GaussianBlocks("power"), "c": GaussianBlocks("power", nu=7.0)}
    JointEstimator(list(blocks.items()), random_state=0).fit(columns(100))
    assert sorted(nu for _, nu in searched if nu != "auto") == [7.0]
    assert len(searched) == 2


@pytest.fixture(scope="module")
def large() -> JointEstimator:
    experts = [("products", JUPAD(3, n_init=1)), ("many_trees", TreeMixture("many", n_models=1))]
    return JointEstimator(experts, random_state=0).fit(columns(CROSSTAB_ROWS))


def test_a_large_table_is_weighed_by_parts_of_rows(large):
    assert -1e-4 < large.fit_.loss <= MOST_LOSS
    assert sum(large.expert_weights_.values()) == pytest.approx(1)
    lines = large.summary().splitlines()
    assert any(line.endswith("weighted by held-out rows and crosstabs of these") for line in lines)
    assert any(line.endswith("given up for better answers") for line in lines)


def test_a_small_table_is_weighed_by_rows_alone(fitted):
    assert fitted.fit_.loss is None
    assert "crosstabs" not in fitted.summary()


class Sized:
    """So many rows of so many columns."""

    def __init__(self, n: int, n_columns: int) -> None:
        self.n, self.axes = n, [None] * n_columns

    def __len__(self) -> int:
        return self.n


def test_many_trees_are_for_large_tables():
    sizes = [(CROSSTAB_ROWS, 4), (CROSSTAB_ROWS - 1, 4), (CROSSTAB_ROWS, 3), (CROSSTAB_ROWS, MOST_COLUMNS + 1)]
    assert [_suits(TreeMixture("many"), Sized(*size), (), MOST_LOSS) for size in sizes] == [True, False, False, False]
    assert [_suits(TreeMixture(), Sized(*size), (), MOST_LOSS) for size in sizes] == [True, True, True, False]
    assert not _suits(TreeMixture("many"), Sized(*sizes[0]), (), most_loss=0.0)


def test_without_a_loss_rows_alone_decide(large):
    model = clone(large).set_params(most_loss=0.0).fit(columns(CROSSTAB_ROWS))
    assert model.fit_.loss is None
    assert "crosstabs" not in model.summary()


@pytest.mark.parametrize("most_loss", [-0.1, np.inf, np.nan, "much"])
def test_wrong_losses(most_loss):
    with pytest.raises(InputError, match="most_loss"):
        JointEstimator(most_loss=most_loss).fit(columns())


def classes(n: int = 300, seed: int = 0) -> dict[str, np.ndarray]:
    """Two columns whose shape one product follows best, and a class that a third column tells in part."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    even = {name: rng.uniform(-1, 1, n) for name in ("b", "c")}
    return {"a": a} | even | {"kind": np.where(a + rng.normal(size=n) > 0, "x", "y")}


ONE_TELLS = [("product", JUPAD(1)), ("blocks", GaussianBlocks("none", n_components=2, n_models=1))]


def test_experts_are_weighed_by_how_they_predict_a_target():
    """One product tells nothing of the class, but more about the shapes of columns."""
    by_rows = JointEstimator(ONE_TELLS, random_state=0).fit(classes())
    model = JointEstimator(ONE_TELLS, target="kind", random_state=0).fit(classes())
    assert model.expert_weights_["blocks"] > by_rows.expert_weights_["blocks"] + 0.1
    assert sum(model.expert_weights_.values()) == pytest.approx(1)
    assert model.fit_.loss > 0
    assert "weighted by how they predict 'kind' in held-out rows" in model.summary()
    fresh = classes(seed=1)
    scores = [_log_chance(each.density_, fresh, "kind") for each in (model, by_rows)]
    assert scores[0] > scores[1]


def _log_chance(density, table, name: str) -> float:
    """Mean log-probability of a column given the others: a slow twin of what a classifier says."""
    others = [other for other in table if other != name]
    joint, alone = density.logpdf(table), density.marginal(others).logpdf({other: table[other] for other in others})
    return float(np.mean(joint - alone))


def test_a_classifier_names_its_class_as_the_target():
    table = classes(100)
    kind = table.pop("kind")
    model = JointClassifier(JointEstimator(ONE_TELLS, random_state=0)).fit(table, kind)
    assert model.estimator_.target == model.estimator_.fit_.target == model.target_name_
    direct = JointEstimator(ONE_TELLS, target="target", random_state=0).fit(table | {"target": kind})
    assert direct.expert_weights_ == model.estimator_.expert_weights_


def test_a_target_is_a_column():
    with pytest.raises(KeyError, match="Unknown column 'kinds'; did you mean 'kind'"):
        small(target="kinds").fit(columns())
    with pytest.raises(InputError, match="`target` must be the name of a column"):
        small(target=3).fit(columns())


def test_a_target_leaves_crosstabs_aside():
    assert not by_crosstabs(Sized(CROSSTAB_ROWS, 5), 0.0)
    # one start of two components may miss the column that tells, and the fit would then warn
    model = JointEstimator(ONE_TELLS, target="kind", random_state=1).fit(classes(CROSSTAB_ROWS))
    assert "crosstabs" not in model.summary()


def test_a_given_prior_stays():
    given, auto = (GaussianBlocks("none", n_components=2, nu=nu).learner("b", None) for nu in (3.0, "auto"))
    choice = BlockChoice(2, 3.0, 0.03)
    assert given.weaker(choice) is None
    assert auto.weaker(choice).nu < 3.0


@pytest.mark.slow
def test_without_two_columns_for_a_block_there_are_products_and_trees():
    table = {name: column for name, column in columns().items() if name in {"a", "kind"}}
    model = JointEstimator(random_state=0).fit(table)
    assert list(model.expert_weights_) == ["jupad", "trees"]
    assert model.check_ is None  # too few rows
    again = JointEstimator(random_state=0).fit({name: table[name] for name in ("kind", "a")})
    np.testing.assert_allclose(again.score_samples(table), model.score_samples(table), atol=1e-12)


def test_one_column_has_products_alone():
    table = {"kind": np.repeat(["x", "y", "x"], 20)}
    model = JointEstimator(random_state=0).fit(table)
    assert model.expert_weights_ == {"jupad": 1.0}
    assert isinstance(model.density_.mixture, ProductMixture)
    assert JointEstimator(random_state=0).fit({"kind": np.repeat(["x", "y", "x"], 100)}).check_ is not None


def test_given_experts_have_their_parameters():
    model = clone(small())
    assert model.get_params()["blocks__n_components"] == 2
    model.set_params(blocks__n_components=1, products=JUPAD(2))
    assert dict(model.experts)["blocks"].n_components == 1
    assert dict(model.experts)["products"].n_components == 2


@pytest.mark.parametrize(
    "experts",
    ["all", [], [("a", JUPAD)], [JUPAD()], [("a", JUPAD()), ("a", JUPAD())], [("a__b", JUPAD())], {"a": JUPAD()},
     [("a", JointEstimator())]],
)  # fmt: skip
def test_wrong_experts(experts):
    with pytest.raises(InputError, match="`experts`"):
        JointEstimator(experts).fit(columns(20))


def test_a_table_in_blocks_gives_the_same_model(fitted):
    table = columns()
    parts = [{name: column[rows] for name, column in table.items()} for rows in np.array_split(np.arange(150), 4)]
    again = small().fit_blocks(lambda: parts)
    np.testing.assert_array_equal(again.score_samples(table), fitted.score_samples(table))


def test_the_order_of_columns_and_rows_does_not_matter(fitted):
    table, rng = columns(), np.random.default_rng(0)
    rows = rng.permutation(150)
    again = small().fit({name: table[name][rows] for name in ("kind", "c", "a", "b")})
    np.testing.assert_allclose(again.score_samples(table), fitted.score_samples(table), atol=1e-9)
    assert again.density_.names == ("kind", "c", "a", "b")


def test_weights_count_rows(fitted):
    table = columns()
    weights = np.where(np.arange(150) < 50, 2.0, 1.0)
    twice = {name: np.concatenate([column, column[:50]]) for name, column in table.items()}
    one, two = small().fit(table, sample_weight=weights), small().fit(twice)
    np.testing.assert_allclose(one.score_samples(table), two.score_samples(table), atol=1e-9)


def test_the_summary_shows_experts(fitted):
    text = fitted.summary()
    assert "JointEstimator: joint density of 4 columns" in text
    for name, weight in fitted.expert_weights_.items():
        line = next(line for line in text.splitlines() if line.startswith(name))
        assert (f"{weight:.2f}" if weight else "dropped") in line


def test_files(fitted, tmp_path):
    fitted.density_.save(tmp_path / "m.jw")
    table = columns(seed=2)
    np.testing.assert_array_equal(load(tmp_path / "m.jw").logpdf(table), fitted.density_.logpdf(table))


def test_one_row_and_few_rows():
    for n in (1, 2, 5):
        table = {name: column[1 : n + 1] for name, column in columns().items()}
        model = JointEstimator(random_state=0).fit(table)
        assert np.isfinite(model.score(table))


def test_an_expert_that_is_dropped_is_not_fitted(monkeypatch):
    monkeypatch.setattr(weighing, "LEAST_WEIGHT", 0.9)
    model = small().fit(columns())
    assert sorted(model.expert_weights_.values()) == [0.0, 1.0]
    assert len(model.fit_.fits) == 1


@pytest.mark.parametrize("told", [5, 10])  # while folds are learned, and again with weaker priors
def test_a_killed_fit_goes_on(tmp_path, fitted, told):
    path, table = tmp_path / "fit.checkpoint", columns()
    calls = iter(range(100))

    def killed(_: str) -> None:
        if next(calls) == told:
            raise RuntimeError("killed")

    model = small(checkpoint=path)
    model._tell = killed
    with pytest.raises(RuntimeError, match="killed"):
        model.fit(table)
    assert path.exists()
    again = small(checkpoint=path).fit(table)
    np.testing.assert_array_equal(again.score_samples(table), fitted.score_samples(table))
    assert not path.exists()


def as_interrupted(fit):
    """A fit as Ctrl-C leaves it."""
    return replace(fit, final=tuple(replace(run, status=Status.INTERRUPTED) for run in fit.final))


def test_an_interrupt_while_rows_are_held_out_ends_the_fit(monkeypatch):
    """What an expert says of held-out rows is not to be kept, even if its own fit could be."""
    monkeypatch.setattr(jupad, "fit_rows", lambda *args, **options: as_interrupted(fit_rows(*args, **options)))
    with pytest.raises(KeyboardInterrupt):
        small(on_interrupt="keep").fit(columns())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_an_interrupt_keeps_the_experts_fitted_by_then(monkeypatch):
    learn = Work.fit

    def interrupted(self, name, rows, what, callback=None):
        found = learn(self, name, rows, what, callback)
        return as_interrupted(found) if what == "all rows" and callback is not None else found

    monkeypatch.setattr(Work, "fit", interrupted)
    model = small(on_interrupt="keep", verbose=True).fit(columns())
    assert model.fit_.was_interrupted
    assert len(model.fit_.fits) == 1
    assert np.isfinite(model.score(columns()))


def test_classifier_and_imputer_hold_it():
    table = columns()
    X = {name: table[name] for name in ("a", "b", "c")}
    classifier = JointClassifier(small()).fit(X, table["kind"])
    assert isinstance(JointClassifier()._unfitted(), JointEstimator)
    assert classifier.score(X, table["kind"]) > 0.6
    filled = JointImputer(small()).fit(table).transform(table)
    assert not np.isnan(filled["b"]).any()
    gaps = np.isnan(table["b"])
    assert np.corrcoef(filled["b"][gaps], table["a"][gaps])[0, 1] > 0.9
