"""Tables at the edge: few rows, few or many columns, odd scales and shapes. Fits are finite and mean something."""

import resource

import numpy as np
import pytest
from scipy import stats
from tests.estimators.cases import QUICK

from jointwise import JUPAD, Dictionary
from jointwise.estimators import _columns

N = 200


def rng(seed=0):
    return np.random.default_rng(seed)


def normal(n_columns=2):
    return rng(1).normal(size=(N, n_columns))


TABLES = {
    "one row": normal(3)[:1],
    "two rows": normal(3)[:2],
    "one row of every kind": {"x": [0.5], "k": [3], "c": ["a"], "d": np.array(["2024-01-01"], "M8[D]")},
    "one column": normal(1),
    "constant column": np.column_stack([np.full(N, 7.5), normal(1)]),
    "constants alone": np.ones((N, 2)),
    "identical columns": np.repeat(normal(1), 2, axis=1),
    "thousand categories": {"c": [f"c{n % 1000}" for n in range(2000)], "x": rng().normal(size=2000)},
    "integers": rng().integers(0, 6, (N, 3)),
    "wide integers": rng().integers(-1000, 1000, (N, 2)),
    "large integers": rng().integers(10**11, 10**12, (N, 2)),
    "categories alone": {"a": rng().choice(list("abc"), N), "b": rng().choice([True, False], N)},
    "dates": {
        "day": np.datetime64("2020-01-01") + rng().integers(0, 1000, N),
        "time": np.datetime64("2020-01-01", "s") + rng().integers(0, 10**7, N),
    },
    "zero-inflated": np.column_stack([np.where(rng().random(N) < 0.6, 0, np.exp(normal(1)[:, 0])), normal(1)]),
    "heavy tails": rng().standard_cauchy((N, 2)),
    "far offset": 1e12 + normal(),
    "tiny scale": 1e-12 * normal(),
    "smallest scale": 1e-300 * normal(),
    "largest scale": 1e300 * normal(),
    "many magnitudes": np.exp(20 * normal()),
    "two values": rng().choice([0.0, 1.0], (N, 3)),
    "one outlier": np.vstack([normal(), [[1e9, -1e9]]]),
}


# two components, or one, are too few for some, and the check rightly says so
@pytest.mark.filterwarnings("ignore::jointwise.exceptions.MisfitWarning")
@pytest.mark.parametrize("name", TABLES)
def test_fit_is_finite_and_samples_look_like_rows(name):
    table = TABLES[name]
    model = JUPAD(n_components=2, n_init=1, max_iter=2000, random_state=0).fit(table)
    assert np.all(np.isfinite(model.score_samples(table)))
    sample = model.sample(50, random_state=0)
    assert np.all(np.isfinite(model.score_samples(sample)))
    mixture = model.density_.mixture
    assert mixture.weights.sum() == pytest.approx(1)
    assert all(np.all(np.isfinite(b)) for b in mixture.coefficients)


@pytest.mark.filterwarnings("ignore::jointwise.exceptions.MisfitWarning")
@pytest.mark.parametrize("name", TABLES)
def test_the_paper_s_method_is_finite_too(name):
    model = JUPAD(n_components=1, method="paper", max_iter=2000, random_state=0).fit(TABLES[name])
    assert np.all(np.isfinite(model.score_samples(TABLES[name])))


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("far offset", stats.norm(1e12, 1)),
        ("tiny scale", stats.norm(0, 1e-12)),
        ("smallest scale", stats.norm(0, 1e-300)),
        ("heavy tails", stats.cauchy()),
    ],
)
def test_odd_scales_are_fitted_as_well_as_any(name, law):
    model = JUPAD(n_components=1, random_state=0).fit(TABLES[name])
    fresh = law.rvs((2000, 2), random_state=3)
    if name == "smallest scale":
        truth = stats.norm.logpdf(fresh * 1e300).sum(axis=1).mean() + 600 * np.log(10)
    else:
        truth = law.logpdf(fresh).sum(axis=1).mean()
    # 200 rows of two independent columns: twice what was seen
    assert truth - 0.3 < model.score(fresh) < truth + 0.05


def test_identical_columns_are_seen_to_depend():
    density = JUPAD(n_components=6, random_state=0).fit(TABLES["identical columns"]).density_
    assert density.mutual_information("x0", "x1").value > 0.1
    # how close they are is limited by the width of the atoms: with narrow ones far more is seen
    narrow = Dictionary.grid("gaussian", -3, 3, step=0.25, scale=0.15)
    model = JUPAD(n_components=12, dictionaries={"x0": narrow, "x1": narrow}, random_state=0)
    density = model.fit(TABLES["identical columns"]).density_
    assert density.mutual_information("x0", "x1").value > 1


def test_constant_column_is_certain():
    density = JUPAD(**QUICK).fit(TABLES["constant column"]).density_
    # any other number is rare, not impossible
    assert density.probability({"x0": 7.5}) == pytest.approx(1, abs=1e-4)


def test_share_of_zeros_is_met():
    table = TABLES["zero-inflated"]
    density = JUPAD(**QUICK).fit(table).density_
    assert density.probability({"x0": 0.0}) == pytest.approx(np.mean(table[:, 0] == 0), abs=0.02)


def test_one_column_ignores_the_number_of_components():
    one, ten = (JUPAD(n, random_state=0).fit(TABLES["one column"]) for n in (1, 10))
    np.testing.assert_array_equal(one.score_samples(normal(1)), ten.score_samples(normal(1)))
    assert ten.converged_
    assert ten.n_iter_ == 1


def test_sixty_columns():
    X, fresh = (np.hstack([rng(seed).normal(size=(150, 20)), rng(seed).integers(0, 3, (150, 40))]) for seed in (0, 1))
    kinds = {f"x{n}": "integer" for n in range(20, 60)}
    model = JUPAD(n_components=2, n_init=1, n_bins=16, kinds=kinds, random_state=0).fit(X)
    assert model.density_.mixture.n_variables == 60
    # twenty standard normals and forty fair three-sided dice: the law itself has a score of -72
    assert -85 < model.score(fresh) < -70


@pytest.mark.slow
def test_wide_tables_share_their_bins(monkeypatch):
    monkeypatch.setattr(_columns, "MOST_BINS_OF_ALL", 100)
    bins = []
    for n_columns, n_bins in ((20, 64), (10, 64), (10, 5), (99, 64)):
        model = JUPAD(1, method="pairs", n_bins=n_bins).fit(rng().normal(size=(100, n_columns)))
        bins.append(max(axis.n_bins for axis in model.fit_.axes))
    assert bins == [5, 10, 5, 3]


@pytest.mark.slow
def test_five_hundred_columns_fit_in_minutes_and_two_gigabytes():
    X = rng().normal(size=(300, 500))
    model = JUPAD(n_components=3, n_init=1, random_state=0).fit(X)
    assert -800 < model.score(X) < -600
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert kilobytes < 2.5 * 2**20
