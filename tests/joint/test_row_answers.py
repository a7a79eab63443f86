"""Answers about each row against loops over `condition`, for products and for sums of other experts."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats
from tests.joint.cases import build, random_density, random_region, random_rows
from tests.joint.test_block import mixture as block_mixture

from jointwise import GaussianBlocks
from jointwise.dictionary import Dictionary
from jointwise.exceptions import InputError, UnknownNameError
from jointwise.families import Gaussian
from jointwise.joint import oddness
from jointwise.joint.events import Interval, Point
from jointwise.joint.explanation import contributions
from jointwise.joint.prediction import event_probabilities
from jointwise.tables.variables import Kind, Variable

FEW = settings(deadline=None, max_examples=25)
KINDS = ("smooth", "spiky", "counts", "lattice", "label", "grade")


@st.composite
def densities(draw):
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=2, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return random_density(rng, kinds, int(rng.integers(1, 4))), rng


def table(density, X):
    """Encoded rows as a user has them."""
    return {v.name: [None if np.isnan(x) else v.decode_value(x) for x in X[:, n]] for n, v in enumerate(density.schema)}


def row_given(density, x, without):
    """The density given the known cells of an encoded row, but those of some variables."""
    known = {v.name: v.decode_value(x[n]) for n, v in enumerate(density.schema) if not np.isnan(x[n])}
    event = {name: value for name, value in known.items() if name not in without}
    return density.condition(event) if event else density


@FEW
@given(densities())
def test_probability_of_an_event_in_each_row_is_that_of_the_conditioned_density(case):
    density, rng = case
    names = list(rng.permutation(density.names)[: rng.integers(1, 3)])
    event = {name: random_region(rng, density, name) for name in names}
    X = density.mixture.sample(5, rng)
    X[rng.random(X.shape) < 0.3] = np.nan
    found = density.probability(event, table(density, X))
    assert found.shape == (5,)
    for x, p in zip(X, found, strict=True):
        given_row = row_given(density, x, names)
        assert p == pytest.approx(given_row.probability(event), rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_probability_in_each_row_of_a_gaussian_block(seed):
    f = block_mixture(seed, 3)
    X = f.sample(4, np.random.default_rng(seed))
    event = {0: Interval(-0.5, 0.7)}
    found = event_probabilities(f, event, X)
    for x, p in zip(X, found, strict=True):
        rest = f.condition({n: Point(x[n]) for n in range(1, f.n_variables)})
        assert p == pytest.approx(np.exp(rest.log_probability(event)), rel=1e-6)


@FEW
@given(densities(), st.floats(0.05, 0.95))
def test_quantiles_and_means_are_those_of_the_conditioned_density(case, level):
    density, rng = case
    n = int(rng.integers(len(density.names)))
    variable = density.schema.variables[n]
    assume(variable.categories is None or variable.ordered)
    X = density.mixture.sample(4, rng)
    X[rng.random(X.shape) < 0.3] = np.nan
    rows = table(density, X)
    frame = density.predict(variable.name, rows, quantiles=[level])
    assert frame.shape == (4, 2)
    for i, x in enumerate(X):
        alone = row_given(density, x, [variable.name])
        found = frame[i, 1]
        expected = alone.quantile(variable.name, level)
        assert found == expected if isinstance(expected, str) else found == pytest.approx(expected, rel=1e-9, abs=1e-9)
        if variable.categories is None:
            mean = alone.mean()[variable.name]
            assert density.expect(variable.name, rows)[i] == pytest.approx(mean, rel=1e-7, abs=1e-9)


def test_an_interval_has_named_columns_in_the_frame_of_the_table():
    rng = np.random.default_rng(0)
    size = rng.normal(size=300)
    first = dt.date(2024, 1, 1)
    frame = pd.DataFrame(
        {
            "size": size,
            "price": 2 * size + 0.1 * rng.normal(size=300),
            "rooms": rng.poisson(np.exp(size / 2)),
            "day": [first + dt.timedelta(days=int(d)) for d in rng.integers(0, 99, 300)],
        }
    )
    density = GaussianBlocks("none", n_components=2, nu=5.0, random_state=0).fit(frame).density_
    found = density.predict("price", frame[["size"]], interval=0.8)
    assert list(found.columns) == ["price", "price 10%", "price 90%"]
    assert isinstance(found, pd.DataFrame)
    assert ((found["price 10%"] <= frame["price"]) & (frame["price"] <= found["price 90%"])).mean() > 0.7
    both = density.predict("rooms", frame, interval=0.5, quantiles=[0.5])
    assert list(both.columns) == ["rooms", "rooms 25%", "rooms 50%", "rooms 75%"]
    assert all(np.issubdtype(kind, np.integer) for kind in both.dtypes)
    assert isinstance(density.predict("day", frame, interval=0.8).iloc[0, 1], dt.date)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"interval": 80}, "`interval` must be a share between 0 and 1"),
        ({"quantiles": [0.5, 1.5]}, "`quantiles` must lie between 0 and 1"),
        ({"target": "label", "interval": 0.8}, "categories without an order"),
    ],
)
def test_what_cannot_be_asked_of_rows(arguments, message):
    x, label = Variable("x", "continuous"), Variable("label", "categorical", categories=("a", "b"), dtype="string")
    atoms = [Dictionary((Gaussian([0.0, 1.0], [1.0, 1.0]),)), Dictionary.categories(2)]
    density = build([x, label], atoms, [0.5, 0.5], [np.eye(2), np.eye(2)])
    with pytest.raises(InputError, match=message):
        density.predict(**({"target": "x", "x": {"label": ["a"]}} | arguments))
    with pytest.raises(InputError, match="no mean"):
        density.expect("label", {"x": [0.0]})


def test_draws_keep_what_is_known_and_follow_the_conditional_law():
    rng = np.random.default_rng(0)
    density = random_density(rng, ("smooth", "label", "smooth"), 3)
    known = density.mixture.sample(2, rng)
    known[:, 2] = np.nan
    rows = table(density, known)
    draws = density.sample_given(rows, 4000, rng=1)
    X = np.array([[v.encode_value(c) for v, c in zip(density.schema, row, strict=True)] for row in draws])
    for i, x in enumerate(known):
        part = X[4000 * i : 4000 * (i + 1)]
        assert (part[:, :2] == x[:2]).all()
        law = row_given(density, x, density.names[2:])
        p = stats.kstest(part[:, 2], lambda v, law=law: law.cdf(np.asarray(v)[:, None])).pvalue
        assert p > 1e-4  # fails by chance once in 5,000 runs


@FEW
@given(densities())
def test_surprisal_is_that_of_the_cell_given_the_rest_of_its_row(case):
    density, rng = case
    X = density.mixture.sample(4, rng)
    X[rng.random(X.shape) < 0.2] = np.nan
    judge = oddness.CellOddness(density.schema, density.mixture)
    found, _ = judge.surprisals(X)
    assert np.array_equal(np.isnan(found), np.isnan(X))
    assert_allclose(density.surprisal(table(density, X)), found - judge.usual[0], rtol=1e-9, atol=1e-9)
    for x, row in zip(X, found, strict=True):
        for n in np.flatnonzero(~np.isnan(x)):
            alone = row_given(density, x, [density.names[n]]).marginal(density.names[n])
            assert row[n] == pytest.approx(-alone.mixture.logpdf(x[[n]][None])[0], rel=1e-7, abs=1e-7)


def test_usual_cells_have_surprisals_about_zero_in_any_unit():
    rng = np.random.default_rng(0)
    density = random_density(rng, ("smooth", "counts", "label", "lattice"), 3)
    found = density.surprisal(density.sample(4000, rng=5))
    se = found.std(axis=0) * np.sqrt(1 / 4000 + 1 / oddness.N_DRAWN)
    assert (np.abs(found.mean(axis=0)) < 5 * se + 1e-12).all()
    x = Variable("x", "continuous")
    for unit in (1.0, 1e6):
        law = build(
            [x, Variable("y", "continuous")], [Dictionary((Gaussian([0.0], [unit]),))] * 2, [1.0], [[[1.0]]] * 2
        )
        assert law.surprisal({"x": [3 * unit]})[0, 0] == pytest.approx(4.0, abs=0.1)  # (3^2 - 1) / 2


@FEW
@given(densities())
def test_impossible_cells_are_infinitely_odd_and_the_others_are_judged_without_them(case):
    density, rng = case
    X = random_rows(rng, density, 6, missing=0.1)
    found, _ = oddness.CellOddness(density.schema, density.mixture).surprisals(X)
    assert not np.isnan(found[~np.isnan(X)]).any()
    assert (np.isinf(found).any(axis=1) == np.isneginf(density.mixture.logpdf(X))).all()


def correlated():
    rng = np.random.default_rng(1)
    a = rng.normal(size=500)
    table = {
        "a": a, "b": a + 0.1 * rng.normal(size=500), "c": rng.normal(size=500),
        "d": np.where(a > 0, "up", "down"),
    }  # fmt: skip
    return GaussianBlocks("none", n_components=2, nu=5.0, random_state=0).fit(table).density_


def test_a_planted_cell_is_explained_first_with_what_was_expected():
    density = correlated()
    found = density.explain({"a": 1.0, "b": -1.0, "c": 0.1, "d": "up"})
    first = found.cells[0]
    assert first.name == "b"
    assert first.value == -1.0
    assert 0.5 < first.expected < 1.5
    assert first.interval[0] < 1.0 < first.interval[1]
    assert first.surprisal > 3
    assert found.share < 0.01
    assert first.oddness < found.oddness / 2
    assert {cell.name for cell in found.cells} == set(density.names)
    assert "b = -1.0" in str(found)
    category = next(cell for cell in found.cells if cell.name == "d")
    assert 0 < category.probability < 1
    ordinary = density.explain({"a": 0.2, "b": 0.25, "c": 0.1, "d": "up"})
    assert ordinary.share > 0.2


def test_oddness_falls_by_the_surprisal_of_what_is_forgotten():
    density = correlated()
    row = {"a": 1.0, "b": -1.0, "c": 0.1, "d": "up"}
    found = density.explain(row)
    X = density._partial_rows(row)
    whole = -density.mixture.logpdf(X)[0]
    rest = -density.marginal(["a", "c", "d"]).mixture.logpdf(X[:, [0, 2, 3]])[0]
    drawn = oddness.drawn(density.mixture)
    entropy = -density.mixture.logpdf(drawn).mean()
    without = -oddness.without(density.mixture, drawn, [1]).mean()
    assert found.oddness == pytest.approx(whole - entropy, abs=1e-9)
    assert found.cells[0].oddness == pytest.approx(rest - without, abs=1e-9)
    assert found.oddness - found.cells[0].oddness == pytest.approx(found.cells[0].surprisal, abs=1e-9)


def test_the_oddness_of_rows_is_that_of_rows_with_the_same_gaps():
    """A plain loop over patterns of gaps, and explain, say the same."""
    density = correlated()
    rows = density.sample(6, rng=3)
    for name, gaps in (("a", [1, 2]), ("b", [1, 3]), ("c", [1, 3, 4])):
        rows[name][gaps] = np.nan
    X, drawn = density._partial_rows(rows), oddness.drawn(density.mixture)
    found = density.oddness(rows)
    for i, x in enumerate(X):
        known = np.flatnonzero(~np.isnan(x))
        law = density.mixture.marginal(known)
        expected = -law.logpdf(x[known][None])[0] + law.logpdf(drawn[:, known]).mean()
        assert found[i] == pytest.approx(expected, abs=1e-9)
        assert density.explain({name: column[i] for name, column in rows.items()}).oddness == pytest.approx(expected)
    assert density.oddness({"a": [np.nan], "b": [None], "c": [None], "d": [None]})[0] == 0.0
    assert density.oddness({"a": [0.0], "b": [0.0], "c": [0.0], "d": ["sideways"]})[0] == np.inf


def test_names_that_the_density_does_not_know_are_no_rows():
    density = correlated()
    for ask in (density.oddness, density.surprisal, lambda x: density.predict("a", x), density.explain):
        with pytest.raises(UnknownNameError, match="Unknown variable 'bb'"):
            ask({"bb": 1.0, "c": 0.0})
        with pytest.raises(InputError, match="none of the columns"):
            ask(pd.DataFrame({"x": [1.0], "y": [2.0]}))
    assert len(density.oddness(pd.DataFrame({"a": [0.1], "note": ["kept"]}))) == 1
    row = {"a": 0.1, "b": 0.2, "c": 0.3, "d": "up", "note": "kept"}
    assert density.oddness(row).shape == density.oddness(pd.Series(row)).shape == (1,)


def test_rows_that_are_mostly_gaps_compare_with_others(monkeypatch):
    """Half of the rows show one cell or two. Odd rows come first, with gaps or without; others are drawn evenly."""
    density = correlated()
    rng = np.random.default_rng(0)
    rows = density.sample(2000, rng=4)
    bare = np.arange(0, 2000, 2)
    rows["b"][bare], rows["c"][bare[::2]] = np.nan, np.nan
    rows["d"] = np.where(np.isin(np.arange(2000), bare), None, rows["d"])
    planted = rng.choice(2000, 20, replace=False)
    shown = np.isnan(rows["b"][planted])
    rows["a"][planted[shown]] = 8.0  # alone it is far out
    rows["b"][planted[~shown]] = rows["a"][planted[~shown]] + 1.0  # ten deviations from what a says
    found = density.oddness(rows)
    assert set(np.argsort(-found)[:20]) == set(planted)
    others = np.setdiff1d(np.argsort(-found)[:220], planted)
    gaps = np.isin(others, bare).mean()
    assert 0.3 < gaps < 0.6  # half of the rows have them
    monkeypatch.setattr(oddness, "MOST_DRAWN", 300)  # fewer draws for each pattern
    np.testing.assert_allclose(density.oddness(rows), found, atol=1.0)


@FEW
@given(densities())
def test_contributions_are_differences_of_predictions(case):
    density, rng = case
    n = int(rng.integers(len(density.names)))
    kind = density.schema.variables[n].kind
    X = density.mixture.sample(3, rng)
    X[rng.random(X.shape) < 0.2] = np.nan
    found = contributions(density.schema, density.mixture, n, X)
    for x, row in zip(X, found, strict=True):
        for m in range(len(x)):
            if m == n or np.isnan(x[m]):
                assert np.isnan(row[m])
                continue
            with_it, without_it = (
                row_given(density, x, {density.names[n], *left}).marginal(density.names[n])
                for left in ((), (density.names[m],))
            )
            if kind is Kind.CATEGORICAL:
                categories = density.schema.variables[n].categories
                shares = [with_it.probability({density.names[n]: c}) for c in categories]
                best = categories[int(np.argmax(shares))]
                log = [np.log(law.probability({density.names[n]: best})) for law in (with_it, without_it)]
                assume(sorted(shares)[-2] < max(shares) * (1 - 1e-6))
                assert row[m] == pytest.approx(log[0] - log[1], abs=1e-7)
            else:
                means = [law.mean()[density.names[n]] for law in (with_it, without_it)]
                assert row[m] == pytest.approx(means[0] - means[1], abs=1e-6)


def test_what_moved_a_prediction():
    density = correlated()
    found = density.explain({"a": 1.5, "c": 0.3, "d": "up"}, target="b")
    assert found.target == "b"
    assert found.cells[0].name == "a"
    assert found.cells[0].contribution > 0.3
    assert "a = 1.5" in str(found)
    assert density.explain({"a": 1.5}, target="d").unit == "log-probability"


def test_rows_that_cannot_be_explained():
    density = correlated()
    with pytest.raises(InputError, match="must be one row"):
        density.explain({"a": [1.0, 2.0]})
    with pytest.raises(InputError, match="no known cell"):
        density.explain({"a": None})


def test_unknown_categories_are_infinitely_odd():
    density = correlated()
    found = density.surprisal({"a": [0.0], "b": [0.0], "c": [0.0], "d": ["sideways"]})
    assert np.isposinf(found[0, 3])
    assert np.isfinite(found[0, :3]).all()
    assert density.explain({"a": 0.0, "b": 0.0, "c": 0.0, "d": "up"}).share > 0


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_tables_come_in_the_frame_type_of_the_rows(library):
    density = random_density(np.random.default_rng(0), ("smooth", "counts", "label"), 2)
    rows = table(density, density.mixture.sample(3, np.random.default_rng(1)))
    rows[density.names[1]][1] = None
    frame = {
        "pandas": lambda: pd.DataFrame(rows, index=["a", "b", "c"]),
        "polars": lambda: pytest.importorskip("polars").DataFrame(rows, strict=False),
        "pyarrow": lambda: pytest.importorskip("pyarrow").table(rows),
    }[library]()
    name = density.names[0]
    found = [density.predict(name, frame, interval=0.8), density.impute(frame), density.sample_given(frame, 2, rng=0)]
    assert all(type(each) is type(frame) for each in found)
    assert [len(each) for each in found] == [3, 3, 6]
    if library == "pandas":
        assert found[0].index.tolist() == found[1].index.tolist() == ["a", "b", "c"]
        assert found[2].index.tolist() == ["a", "a", "b", "b", "c", "c"]
