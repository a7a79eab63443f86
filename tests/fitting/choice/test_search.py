"""Number of components and strength of the prior: rich where columns depend strongly, plain where they do not."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.fitting.cases import fit_models

from jointwise import Profile
from jointwise.datasets import gaussians
from jointwise.dictionary import Dictionary
from jointwise.fitting import Options
from jointwise.fitting.atoms import Learned
from jointwise.fitting.average import held_out_gains
from jointwise.fitting.choice import choose_model, search, short_run
from jointwise.fitting.choice.dictionaries import choose_dictionaries
from jointwise.fitting.choice.search import BETAS, NUMBERS
from jointwise.fitting.problem import rows_problem
from jointwise.rows.coded import CodedRows


def coded(X):
    profile = Profile.of(X)
    schema = profile.schema()
    return CodedRows.of(X, schema, profile.axes(schema, 64)).canonical()


def choice(X, seed=0, **how):
    return choose_model(coded(X), Options(**{"n_models": 1} | how), np.random.default_rng(seed))


def clusters(n, spread, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(6, 4)) * spread
    return centres[rng.integers(6, size=n)] + rng.normal(size=(n, 4))


def test_strong_dependence_wants_more_components_and_a_weaker_prior():
    strong, weak = choice(clusters(600, 4.0)), choice(clusters(600, 0.0))
    assert strong.n_components > weak.n_components
    assert strong.beta < weak.beta or weak.n_components == 1
    assert {strong.n_components, weak.n_components} <= set(NUMBERS)
    assert {strong.beta, weak.beta} <= set(BETAS)
    assert strong.held_out > strong.independence
    assert weak.held_out >= weak.independence  # one component is independence, and is among the choices


def test_choice_does_not_depend_on_the_order_of_rows():
    X = clusters(300, 2.0)
    assert choice(X) == choice(X[::-1])


def test_what_is_given_is_not_chosen():
    X = clusters(300, 2.0)
    assert choice(X, n_components=5).n_components == 5
    assert choice(X, beta=2.5).beta == 2.5
    both = choice({"a": [1, 2, 1, 2], "b": [1, 2, 2, 1]}, n_components=2, beta=1.0)
    assert (both.n_components, both.beta, both.held_out) == (2, 1.0, None)


def test_independent_columns_get_nothing_worse_than_independence():
    """The gain over independence on fresh rows has standard error sd / sqrt(n); three of them are allowed."""
    rng = np.random.default_rng(1)
    X, fresh = rng.normal(size=(2, 1000, 4))
    rows = coded(X)
    found = choose_model(rows, Options(n_models=3), rng)
    density = fit_models(rows, found.models, found.n_components, found.beta, rng=rng).density
    independence = fit_models(rows, found.models, 1, rng=rng).density
    gain = density.logpdf(fresh) - independence.logpdf(fresh)
    assert gain.mean() > -3 * gain.std() / np.sqrt(len(gain)) - 1e-3


def test_models_see_a_column_through_different_atoms():
    models = choice(clusters(600, 2.0), n_models=3).models
    assert len({model[0].n_atoms for model in models} | {model[1].n_atoms for model in models}) > 1


def test_coarse_given_atoms_are_learned_where_rows_gain():
    X = gaussians(0).sample(3000, rng=1)
    coarse = {f"x{n}": Dictionary.grid("gaussian", -6, 6, n=5, scale=3.0) for n in range(6)}
    how = {"n_models": 1, "n_components": 8, "beta": 8.0, "dictionaries": coarse}
    found, kept = (choice(X, **how, learn_dictionary=learn) for learn in ("auto", False))
    assert found.learn_dictionary
    assert not kept.learn_dictionary


def test_narrow_atoms_are_added_where_rows_show_that_they_are_needed():
    z = np.random.default_rng(2).normal(size=400)
    twins, strangers = np.column_stack([z, z]), np.random.default_rng(3).normal(size=(400, 2))
    sizes = [choice(X).models[0][0].n_atoms for X in (twins, strangers)]
    assert sizes[0] > sizes[1]


def test_the_gain_of_an_average_is_that_of_the_mean_density():
    """Against loops over rows, columns and components."""
    rng = np.random.default_rng(0)
    rows, fresh = coded(clusters(200, 3.0)), coded(clusters(200, 3.0)).take(np.arange(0, 200, 7))
    problem = rows_problem(rows, [Dictionary.grid("gaussian", -8, 8, n=9, scale=2.0)] * 4, 1.0)
    models = [Learned((), problem, short_run(problem, 3, rng)) for _ in range(2)]
    expected = 0.0
    for codes, weight in zip(fresh.codes, fresh.weights, strict=True):
        alone = np.prod([(problem.masses[n] @ problem.margins[n])[codes[n]] for n in range(4)])
        densities = [
            sum(
                model.factors.weights[r]
                * np.prod([(problem.masses[n] @ model.factors.coefficients[n])[codes[n], r] for n in range(4)])
                for r in range(3)
            )
            for model in models
        ]
        expected += weight * np.log(np.mean(densities) / alone)
    np.testing.assert_allclose(held_out_gains(models, [fresh.engine()])[0], expected, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_categories_that_only_held_out_rows_have_say_nothing_about_components(seed):
    rng = np.random.default_rng(seed)
    X = {"a": rng.normal(size=300), "c": rng.integers(0, 150, 300).astype(str).astype(object)}
    rows = coded(X)
    part, rest = rows.take(np.arange(0, len(rows), 3)), rows.take(np.arange(1, len(rows), 3))
    dictionaries = choose_dictionaries(rest, {}, rng)
    problem = rows_problem(rest, dictionaries, 1.0)
    fitted = Learned(tuple(dictionaries), problem, short_run(problem, 3, rng))
    unmet = np.isin(part.codes[:, 1], rest.codes[:, 1], invert=True)
    assert unmet.any()
    alone = part.take(np.flatnonzero(unmet))
    others = replace(alone, codes=np.column_stack([alone.codes[:, 0], np.full(len(alone), alone.n_bins[1])]))  # gaps
    np.testing.assert_allclose(
        held_out_gains([fitted], [alone.engine()]), held_out_gains([fitted], [others.engine()]), rtol=1e-9
    )


def test_a_table_of_rare_categories_has_a_likelihood_below_one():
    rng = np.random.default_rng(0)
    X = {"a": rng.normal(size=600), "c": np.round(rng.normal(3, 0.6, 600), 2).astype(str).astype(object)}
    assert choice(X, n_components=3).held_out < 0


def test_averages_go_on_from_the_place_that_one_model_found(monkeypatch):
    monkeypatch.setattr(search, "SMALL_TABLE", 100)
    monkeypatch.setattr(search, "MANY", 4)
    scores = {}
    monkeypatch.setattr(search, "scores_to_dict", lambda found: scores.update(found) or {})
    found = choice(clusters(600, 4.0), n_models=3)
    n_sets = max(key[0] for key in scores) // 2 + 1  # one or two, and as many again of averages
    averages = {key[1:]: sum(blocks) for key, blocks in scores.items() if key[0] >= n_sets and key[-1] == 0}
    # on the first fold, which may be all that was needed; others may have told close ones apart
    best = max(averages.values())
    assert averages[found.n_components, found.beta, False, 0] > best - 0.01 * abs(best)
    assert found.n_components > 4


def test_more_rows_bear_more_components_up_to_a_bound_of_time():
    grown = [search._grown(64, n, 512) for n in (5_000, 20_000, 200_000, 2_000_000, 10**9)]
    assert grown == [64, 64, 128, 64, 64]


def test_choices_far_apart_need_one_fold_and_close_ones_all():
    rows = coded(clusters(900, 4.0))
    scores = {}
    folds = search.row_folds(rows, np.random.default_rng(0))
    dictionaries = [Dictionary.grid("gaussian", -12, 12, n=13, scale=2.0)] * 4
    book = search._Book(0, scores, search.Checkpoint())
    found = search._Search(search._Fold.all_of(folds, dictionaries), dictionaries, NUMBERS, BETAS, 0, book)
    far = search.difference(found, search.Tried(8, 3.0), found, search.Tried(2, 3.0))
    assert far > 0
    assert {key[-1] for key in scores} == {0}
    search.difference(found, search.Tried(8, 3.0), found, search.Tried(8, 3.0))
    assert {key[-1] for key in scores if key[1] == 8} == {0, 1, 2}
    whole = found.held_out(search.Tried(8, 3.0)) - found.held_out(search.Tried(2, 3.0))
    assert abs(far - whole) < 0.5 * whole


class Scripted:
    """A search whose scores of the blocks of each fold are given."""

    def __init__(self, *scores) -> None:
        self.scores = [np.array(each, dtype=float) for each in scores]
        self.folds = [SimpleNamespace(n_rows=10.0 * len(each), sizes=np.full(len(each), 10.0)) for each in self.scores]
        self.book = SimpleNamespace(has=lambda *_: True)

    def block_scores(self, _, k):
        return tuple(self.scores[k])

    def held_out(self, _):
        return sum(each.sum() for each in self.scores) / sum(fold.n_rows for fold in self.folds)


@pytest.mark.parametrize("n_folds", [1, 2])
def test_a_row_that_is_impossible_under_a_choice_decides_and_one_impossible_under_both_does_not(n_folds):
    good, bad = [-20.0] * search.BLOCKS, [-20.0] * (search.BLOCKS - 1) + [-np.inf]
    first, second = Scripted(*[good] * n_folds), Scripted(*[bad] * n_folds)
    tried = search.Tried(8, 3.0)
    assert search.difference(first, tried, second, tried) == np.inf
    assert search.difference(second, tried, first, tried) == -np.inf
    assert search.difference(second, tried, second, tried) == 0


def test_a_climb_ends_where_differences_lead_in_a_circle():
    circle = [(4, 1.0), (4, 3.0), (8, 3.0), (8, 1.0)]

    class Circular(search._Search):
        def _difference(self, one, other):
            places = [(self._numbers[at[0]], self._betas[at[1]]) for at in (one, other)]
            if not all(place in circle for place in places):
                return -1.0
            return 1.0 if (circle.index(places[0]) - circle.index(places[1])) % 4 == 1 else -1.0

    fold = SimpleNamespace(rest=coded(clusters(300, 2.0)))
    found = Circular([fold], (), (2, 4, 8), (0.3, 1.0, 3.0), 0, None)
    assert found.climb(4, 1.0) in circle
