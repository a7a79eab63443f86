"""Which gaps tell something, on held-out rows."""

import numpy as np
import pytest

from jointwise.fitting.gaps import gap_gains, telling_gaps
from jointwise.marginals import Profile
from jointwise.rows.coded import CodedRows
from jointwise.tables.gaps import with_gap_variables


def coded(table, weights=None):
    profile = Profile.of(table, weights)
    schema = with_gap_variables(profile.schema(), profile.with_gaps())
    axes = profile.axes(schema, 32)
    return CodedRows.of(table, schema, axes, weights)


def table(n, seed, strength):
    """Gaps of pay that depend on the job as strongly as is said, and gaps of age that depend on nothing."""
    rng = np.random.default_rng(seed)
    job = rng.integers(3, size=n)
    pay, age = rng.normal(size=n) + job, rng.normal(size=n)
    pay[rng.random(n) < 0.3 + strength * (job - 1)] = np.nan
    age[rng.random(n) < 0.3] = np.nan
    return {"job": job, "pay": pay, "age": age}


def test_gaps_that_depend_on_another_column_are_found_and_others_are_not():
    rows = coded(table(2000, 0, 0.15))
    assert telling_gaps(rows, rows.axes) == ("pay",)


def test_gaps_that_depend_on_nothing_are_seldom_taken_for_telling():
    """Each of 20 columns passes with a probability below one in a thousand; the seeds are fixed."""
    found = [telling_gaps(rows, rows.axes) for rows in (coded(table(600, seed, 0.0)) for seed in range(10))]
    assert sum(map(len, found)) == 0


def test_gaps_that_come_together_tell_each_other():
    rng = np.random.default_rng(1)
    a, b, c = rng.normal(size=(3, 800))
    gone = rng.random(800) < 0.3
    a[gone] = b[gone] = np.nan
    rows = coded({"a": a, "b": b, "c": c})
    assert telling_gaps(rows, rows.axes) == ("a", "b")


def test_the_order_of_rows_and_weights_for_repeats_do_not_matter():
    data = table(500, 3, 0.2)
    rows = coded(data)
    order = np.random.default_rng(0).permutation(500)
    again = coded({name: column[order] for name, column in data.items()})
    assert telling_gaps(rows, rows.axes) == telling_gaps(again, again.axes)
    doubled = coded(data, np.full(500, 2.0))
    assert telling_gaps(doubled, doubled.axes) == telling_gaps(rows, rows.axes)


def test_large_weights_are_no_evidence():
    """Ten rows a thousand times over tell no more than ten rows."""
    data = {name: column[:10] for name, column in table(500, 3, 0.3).items()}
    rows = coded(data, np.full(10, 1000.0))
    assert telling_gaps(rows, rows.axes) == ()


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_rows_tell_nothing(n):
    data = {"a": [1.0, *[None] * (n - 1)], "b": np.arange(n) / 3}
    rows = coded(data)
    assert telling_gaps(rows, rows.axes) == ()


def test_gains_are_those_of_a_plain_loop(monkeypatch):
    import jointwise.fitting.gaps as module

    kept = {}
    short_run = module.short_run

    def keep(problem, *rest):
        kept["problem"], kept["factors"] = problem, short_run(problem, *rest)
        return kept["factors"]

    monkeypatch.setattr(module, "short_run", keep)
    rows = coded(table(120, 0, 0.2))
    gains = gap_gains(rows, rows, np.random.default_rng(0))
    problem, factors = kept["problem"], kept["factors"]
    names = rows.schema.names
    for i in range(0, 120, 17):
        for g, (column, gap) in enumerate(rows.schema.gaps.items()):
            posterior, code = factors.weights.copy(), rows.codes[i, names.index(gap)]
            law = factors.coefficients[names.index(gap)][code]
            for n, name in enumerate(names):
                if name not in (column, gap) and rows.codes[i, n] < rows.n_bins[n]:
                    posterior *= (problem.masses[n] @ factors.coefficients[n])[rows.codes[i, n]]
            expected = np.log(posterior @ law / posterior.sum()) - np.log(factors.weights @ law)
            assert gains[i, g] == pytest.approx(expected)
