"""The contract of an expert as checks of twins: the same density twice, as the expert and as a mixture of products."""

from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np
import pytest
from tests.joint.cases import random_event, random_rows

from jointwise import JointDensity
from jointwise.exceptions import ImpossibleEventError
from jointwise.joint.atom_kinds import AtomKinds
from jointwise.joint.events import Interval, Point, Values
from jointwise.joint.prediction import best_values, fill

# Rounding: the two add up the same terms in another order.
CLOSE = {"rtol": 1e-9, "atol": 1e-13}
# Logarithms of densities below this have too few digits left for a posterior.
NEAR = -1e4


@dataclass(frozen=True)
class Twins:
    """The same density twice: as the expert under test, and as one mixture of products."""

    ours: JointDensity
    whole: JointDensity
    rng: np.random.Generator

    @property
    def experts(self):
        return self.ours.mixture, self.whole.mixture


def same_answers(ours, theirs, rng):
    rows = theirs.sample(6, rng)
    np.testing.assert_allclose(ours.logpdf(rows), theirs.logpdf(rows), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(ours.cdf(rows), theirs.cdf(rows), rtol=1e-7, atol=1e-9)


# ---- density and one variable ------------------------------------------------------------------------------


def check_density_and_cdf(case):
    ours, whole = case.experts
    rows = random_rows(case.rng, case.whole, 12)
    np.testing.assert_allclose(ours.logpdf(rows), whole.logpdf(rows), **CLOSE)
    np.testing.assert_allclose(ours.cdf(rows), whole.cdf(rows), **CLOSE)
    by_component = ours.component_logpdf(rows)
    assert by_component.shape == (12, ours.n_components)
    np.testing.assert_allclose(np.logaddexp.reduce(by_component, axis=1), whole.logpdf(rows), **CLOSE)
    np.testing.assert_allclose(ours.weights.sum(), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(
        ours.without_impossible_cells(rows), whole.without_impossible_cells(rows)
    )  # the general way and that of products


def check_tables_of_densities(case):
    ours, whole = case.experts
    points = [np.unique(random_rows(case.rng, case.whole, 9, missing=0)[:, n]) for n in range(whole.n_variables)]
    table = ours.pdf_table(points)
    assert table.shape == tuple(map(len, points))
    np.testing.assert_allclose(table, whole.pdf_table(points), **CLOSE)
    grid = np.stack(np.meshgrid(*points, indexing="ij"), axis=-1).reshape(-1, whole.n_variables)
    np.testing.assert_allclose(table.ravel(), np.exp(whole.logpdf(grid)), **CLOSE)


def check_conditionals(case):
    expert, whole = case.experts
    rows = random_rows(case.rng, case.whole, 10)
    for n in range(whole.n_variables):
        ours, theirs = expert.conditionals(n, rows), whole.conditionals(n, rows)
        np.testing.assert_allclose(ours.log_evidence, theirs.log_evidence, **CLOSE)
        possible = theirs.log_evidence > NEAR
        points = random_rows(case.rng, case.whole, 10, missing=0)[:, n]
        np.testing.assert_allclose(ours.pdf(points)[possible], theirs.pdf(points)[possible], **CLOSE)
        np.testing.assert_allclose(ours.cdf(points)[possible], theirs.cdf(points)[possible], **CLOSE)
        assert np.isfinite(ours.cdf(points)).all()
        if case.whole.schema.variables[n].categories is None:
            np.testing.assert_allclose(ours.mean()[possible], theirs.mean()[possible], rtol=1e-8, atol=1e-8)
            check_quantiles(ours, possible)


def check_quantiles(law, possible):
    """The median halves the law, and lies between the ends that it claims."""
    median, (low, high) = law.quantile(0.5), law.bracket(0.5)
    assert ((np.nextafter(low, -np.inf) <= median) & (median <= high)).all()  # the search may end one float below
    assert (law.cdf(median) >= 0.5 - 1e-9)[possible].all()
    assert (law.cdf(median - 1e-9 * (1 + abs(median))) <= 0.5 + 1e-6)[possible].all()


def check_laws_of_gaps(expert, rows):
    """They are the conditionals, of all missing cells and no others."""
    met = np.zeros(rows.shape, dtype=bool)
    for n, where, law in expert.gaps(rows):
        met[where, n] = True
        one_by_one = expert.conditionals(n, rows[where])
        np.testing.assert_allclose(law.log_evidence, one_by_one.log_evidence, **CLOSE)
        x, possible = np.linspace(-3, 3, len(where)), one_by_one.log_evidence > NEAR
        np.testing.assert_allclose(law.cdf(x)[possible], one_by_one.cdf(x)[possible], **CLOSE)
    np.testing.assert_array_equal(met, np.isnan(rows))


# ---- events ------------------------------------------------------------------------------------------------


def check_events(case):
    ours, whole = case.experts
    event = case.whole._regions(random_event(case.rng, case.whole, case.whole.names[1:]))
    np.testing.assert_allclose(np.exp(ours.log_probability(event)), np.exp(whole.log_probability(event)), **CLOSE)
    try:
        expected = whole.condition(event)
    except ImpossibleEventError:
        with pytest.raises(ImpossibleEventError):
            ours.condition(event)
        return
    same_answers(ours.condition(event), expected, case.rng)
    boxes = {n: region for n, region in event.items() if not isinstance(region, Point)}
    if boxes:
        assert ours.given(boxes)[0] == pytest.approx(ours.log_probability(boxes), rel=1e-9, abs=1e-12)


def check_chain_rule_and_total_probability(case):
    ours, whole = case.experts
    row = whole.sample(1, case.rng)
    first = ours.marginal([0])
    rest = ours.condition({0: Point(float(row[0, 0]))})
    chained = first.logpdf(row[:, :1]) + rest.logpdf(row[:, 1:])
    np.testing.assert_allclose(chained, whole.logpdf(row), rtol=1e-9, atol=1e-9)
    # a missing cell is the marginal of the rest
    without = row.copy()
    without[0, 0] = np.nan
    others = range(1, whole.n_variables)
    np.testing.assert_allclose(ours.logpdf(without), ours.marginal(others).logpdf(row[:, 1:]), **CLOSE)
    # P(B) = P(A) P(B | A) + P(not A) P(B | not A)
    cut = float(row[0, 0])
    sides = {0: [Interval(-np.inf, cut), Interval(float(np.nextafter(cut, np.inf)), np.inf)]}
    b = case.whole._regions(random_event(case.rng, case.whole, case.whole.names[1:2], shapes=("interval", "set")))
    total = 0.0
    for side, p in zip(sides[0], ours.crosstab(sides), strict=True):
        if p > 0:
            total += p * np.exp(ours.condition({0: side}).log_probability(b))
    assert total == pytest.approx(np.exp(ours.log_probability(b)), rel=1e-7, abs=1e-12)


def check_cross_tables(case):
    ours, whole = case.experts
    regions = {}
    for n in case.rng.permutation(whole.n_variables).tolist():
        a, b = np.sort(whole.sample(2, case.rng)[:, n])
        regions[n] = [Interval(-np.inf, a), Point(float(a)), Values((float(b),)), Interval(a, np.inf)]
    np.testing.assert_allclose(ours.crosstab(regions), whole.crosstab(regions), **CLOSE)
    check_pair_tables(ours, regions, **CLOSE)


def check_pair_tables(expert, regions, **close):
    """Tables of many pairs against those asked for one by one."""
    pairs = list(permutations(regions, 2))
    for pair, table in zip(pairs, expert.pair_tables(regions, pairs), strict=True):
        np.testing.assert_allclose(table, expert.crosstab({n: regions[n] for n in pair}), **close)
    assert expert.pair_tables(regions, []) == []


def check_atom_kinds(expert):
    """The kinds that an expert knows against those of its atoms."""
    for n in range(expert.n_variables):
        ours, theirs = expert.atom_kinds(n), AtomKinds.of(expert.dictionary(n))
        np.testing.assert_array_equal(ours.spikes, theirs.spikes)
        assert replace(ours, spikes=0) == replace(theirs, spikes=0)


# ---- moments and samples -----------------------------------------------------------------------------------


def check_covariance(case):
    ours, whole = case.experts
    np.testing.assert_allclose(ours.covariance(), whole.covariance(), rtol=1e-7, atol=1e-7)


def check_completed_rows(case):
    """They keep their cells, have no gaps, and are possible if their cells are."""
    ours, whole = case.experts
    rows = whole.sample(8, case.rng)
    known = case.rng.random(rows.shape) < 0.6
    filled = ours.complete(np.where(known, rows, np.nan), case.rng)
    np.testing.assert_array_equal(filled[known], rows[known])
    assert np.isfinite(whole.logpdf(filled)).all()
    odd = random_rows(case.rng, case.whole, 8, missing=0.4)  # some impossible
    filled = ours.complete(odd, case.rng)
    assert not np.isnan(filled).any()
    np.testing.assert_array_equal(filled[~np.isnan(odd)], odd[~np.isnan(odd)])


# ---- the answers of a density ------------------------------------------------------------------------------


def check_moments_and_quantiles(case):
    density, whole = case.ours, case.whole
    for name in whole.names:
        for ours, theirs in ((density.mean(), whole.mean()), (density.var(), whole.var())):
            np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-8, atol=1e-8)
        variable = whole.schema[name]
        if variable.categories is None or variable.ordered:
            q = np.array([0.03, 0.5, 0.97])
            ours, theirs = (np.array([variable.encode_value(v) for v in d.quantile(name, q)]) for d in (density, whole))
            cdf = whole.marginal(name).mixture.cdf(ours[:, None])
            assert (cdf >= q - 1e-9).all()
            np.testing.assert_allclose(cdf, whole.marginal(name).mixture.cdf(theirs[:, None]), atol=1e-9)
        modes = [whole.marginal(name).pdf({name: [d.mode()[name]]})[0] for d in (density, whole)]
        assert modes[0] == pytest.approx(modes[1], rel=1e-6)


def check_entropy_and_information(case):
    """They agree within their errors."""
    ours, theirs = case.ours.entropy(), case.whole.entropy()
    assert abs(ours.value - theirs.value) <= 5 * (ours.error + theirs.error) + 1e-9
    if len(case.whole.names) == 2:
        ours, theirs = (d.mutual_information(*d.names) for d in (case.ours, case.whole))
        assert abs(ours.value - theirs.value) <= 5 * (ours.error + theirs.error) + 1e-9


def check_predictions_and_filled_gaps(case):
    density, whole = case.ours, case.whole
    X = random_rows(case.rng, whole, 8)
    rows = whole.mixture.sample(8, case.rng)
    rows[np.isnan(X)] = np.nan
    table = {v.name: [v.decode_value(x) for x in rows[:, n]] for n, v in enumerate(whole.schema)}
    filled = density.impute(table), whole.impute(table)
    for n, variable in enumerate(whole.schema):
        others = {name: cells for name, cells in table.items() if name != variable.name}
        ours, theirs = (d.predict(variable.name, others) for d in (density, whole))
        if variable.categories is not None:
            shares = whole.predict_proba(variable.name, others)
            np.testing.assert_allclose(density.predict_proba(variable.name, others), shares, rtol=1e-8, atol=1e-12)
            codes = np.array([variable.encode_value(v) for v in ours], dtype=int)
            np.testing.assert_allclose(shares[np.arange(8), codes], shares.max(axis=1), rtol=1e-9)
            continue
        near = 1.0 if variable.kind == "integer" else 1e-7  # a mean half way between integers may go either way
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=near)
        np.testing.assert_allclose(
            np.asarray(filled[0][:, n], dtype=float), np.asarray(filled[1][:, n], dtype=float), rtol=1e-7, atol=near
        )


def check_impossible_rows(case):
    """They are read without their impossible cells."""
    expert, whole = case.experts
    X = random_rows(case.rng, case.whole, 8)
    for n, variable in enumerate(case.whole.schema):
        ours, theirs = (best_values(each, n, variable.kind, X) for each in (expert, whole))
        if variable.kind == "continuous":
            others = whole.without_impossible_cells(np.where(np.arange(X.shape[1]) == n, np.nan, X))
            near = whole.logpdf(others) > NEAR
            np.testing.assert_allclose(ours[near], theirs[near], rtol=1e-7, atol=1e-7)
        assert np.isfinite(ours).all()
    assert not np.isnan(fill(expert, case.whole.schema, X)).any()
