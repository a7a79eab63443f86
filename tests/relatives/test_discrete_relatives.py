"""CoupledPMF and PairwisePMF: recovery of known joints, gaps, frames, and wrong use."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from tests.relatives.cases import error, exact_pairs, exact_triples, random_law, separable_law, tensor

from jointwise.axes import BinnedAxis
from jointwise.exceptions import InputError, RankError
from jointwise.marginals import PairwiseMarginals, Profile, SubsetMarginals
from jointwise.relatives import CoupledPMF, PairwisePMF

METHODS = [
    CoupledPMF(2, random_state=0),
    CoupledPMF(2, loss="kl", random_state=0),
    PairwisePMF(2, method="spa", random_state=0),
    PairwisePMF(2, method="opt", tol=1e-4, random_state=0),
    PairwisePMF(2, method="em", random_state=0),
]


@pytest.fixture(params=METHODS, ids=lambda m: f"{type(m).__name__}-{getattr(m, 'method', getattr(m, 'loss', ''))}")
def model(request):
    return clone(request.param)


def test_the_error_falls_with_the_rows(model):
    law = separable_law()
    errors = [error(clone(model).fit(law.sample(n, rng=n)), law) for n in (300, 3_000, 30_000)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.05


def test_scores_are_log_masses_that_sum_to_one(model):
    law = separable_law()
    model.fit(law.sample(500, rng=0))
    cells = np.array(list(np.ndindex(3, 3, 3, 3)))
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(model.score_samples(cells), np.log(tensor(model.density_)).ravel(), rtol=1e-9)
    assert np.exp(model.score_samples(cells)).sum() == pytest.approx(1.0)
    assert model.score(cells[:5]) == pytest.approx(model.score_samples(cells[:5]).mean())


def test_gaps_are_left_out_and_integrated(model):
    law = separable_law()
    X = law.sample(4_000, rng=1).astype(object)
    X[np.random.default_rng(0).random(X.shape) < 0.15] = None
    model.fit(X)
    assert error(model, law) < 0.25
    row = np.array([[0, None, None, None]], dtype=object)
    assert np.exp(model.score_samples(row)) == pytest.approx(model.density_.probability({"x0": 0}))


def test_the_same_seed_gives_the_same_fit_and_draws_come_as_the_frame_that_was_fitted(model):
    X = pd.DataFrame(separable_law().sample(400, rng=2), columns=list("abcd")).map("kind {}".format)
    first, second = clone(model).fit(X), model.fit(X)
    np.testing.assert_array_equal(first.density_.mixture.weights, second.density_.mixture.weights)
    drawn = first.sample(5, random_state=0)
    assert isinstance(drawn, pd.DataFrame)
    assert list(drawn.columns) == list("abcd")
    assert set(drawn["a"]) <= set(X["a"])
    assert list(model.feature_names_in_) == list("abcd")


def test_integers_keep_their_values(model):
    X = separable_law().sample(400, rng=3) * 10 - 5
    density = model.fit(X).density_
    assert density.schema["x0"].kind == "integer"
    assert density.probability({"x0": {-5, 5, 15}}) == pytest.approx(1.0)
    assert model.score_samples(np.array([[-5, -5, -5, 3]])) == -np.inf


def test_the_end_of_a_run_is_recorded(model):
    model.fit(separable_law().sample(300, rng=0))
    assert model.n_iter_ >= 1
    assert model.converged_
    assert np.isfinite(model.objective_)


# ---- exact marginals ---------------------------------------------------------------------------------------


def test_exact_triples_recover_the_joint():
    law = random_law(1, sizes=(3, 4, 3, 3), rank=3)
    model = CoupledPMF(3, tol=1e-9, max_iter=1000, n_init=1, random_state=0)
    with pytest.warns(ConvergenceWarning):
        model.fit_marginals(exact_triples(law))
    assert error(model, law) < 1e-6
    assert model.n_features_in_ == 4
    assert model.score_samples(np.array([[0, 0, 0, 0]])) == pytest.approx(np.log(tensor(law)[0, 0, 0, 0]), abs=1e-4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("options", [{"method": "spa"}, {"method": "opt", "floor": 1e-9, "tol": 1e-9}])
def test_exact_pairs_recover_a_separable_joint(options):
    law = separable_law(1, sizes=(3, 4, 3, 4), rank=3)
    model = PairwisePMF(3, split=3, random_state=0, **options).fit_marginals(exact_pairs(law))
    assert error(model, law) < 1e-6


def test_the_best_of_several_splits_finds_the_separable_one():
    law = separable_law(2, sizes=(3, 3, 3, 3), rank=2)
    model = PairwisePMF(2, method="spa", n_init=20, random_state=0).fit_marginals(exact_pairs(law))
    assert error(model, law) < 1e-6


def test_fits_from_rows_and_from_their_marginals_are_equal():
    X = separable_law().sample(500, rng=4)
    profile = Profile.of(X)
    schema = profile.schema()
    axes = profile.axes(schema, 10)  # integers: an open-ended bin for each
    triples = SubsetMarginals.of(X, schema, axes, [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)])
    pairs = PairwiseMarginals.of(X, schema, axes)
    for model, marginals in ((METHODS[0], triples), (METHODS[2], pairs)):
        one, other = clone(model).fit(X), clone(model).fit_marginals(marginals)
        np.testing.assert_array_equal(tensor(one.density_), tensor(other.density_))
        np.testing.assert_array_equal(one.score_samples(X[:5]), other.score_samples(X[:5]))


def test_a_share_of_the_triples_is_enough():
    law = random_law(3, sizes=(3,) * 6)
    few = CoupledPMF(2, triples=0.2, random_state=0).fit(law.sample(5000, rng=0))
    assert error(few, law) < 0.2


# ---- wrong use ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [CoupledPMF(2), PairwisePMF(2)])
def test_continuous_columns_are_refused(estimator):
    X = np.random.default_rng(0).normal(size=(20, 4))
    with pytest.raises(InputError, match=r"needs categorical or integer columns; column 'x0' is continuous. Bin it"):
        estimator.fit(X)


def test_triples_need_three_columns_and_pairs_two():
    with pytest.raises(InputError, match="CoupledPMF needs at least 3 columns; got a table with 2 feature"):
        CoupledPMF(2).fit([[0, 1], [1, 0]])
    with pytest.raises(InputError, match="PairwisePMF needs at least 2 columns; got a table with 1 feature"):
        PairwisePMF(2).fit([[0], [1]])


def test_too_many_components_are_refused():
    X = separable_law().sample(100, rng=0)
    with pytest.raises(RankError, match="CoupledPMF can hold at most 27 components here: that many hold any joint"):
        CoupledPMF(28).fit(X)
    with pytest.raises(RankError, match="PairwisePMF can hold at most 6 components here: the states of the smaller"):
        PairwisePMF(7).fit(X)
    with pytest.raises(RankError, match=r"at most 3 components here: the states .* with split=3"):
        PairwisePMF(4, split=3).fit(X)


@pytest.mark.parametrize(
    ("estimator", "sentence"),
    [
        (CoupledPMF(0), "`n_components` must be an integer of at least 1"),
        (CoupledPMF(loss="l1"), "`loss` must be one of 'frobenius', 'kl'"),
        (CoupledPMF(triples=0.0), "`triples` must be a share of all triples, above 0 and at most 1"),
        (CoupledPMF(rho=-1.0), "`rho` must be a positive number"),
        (CoupledPMF(loss="kl", rho=10.0), '`rho` must be a positive number, for loss="frobenius" only'),
        (CoupledPMF(tol=-1.0), "`tol` must not be negative"),
        (PairwisePMF(method="als"), "`method` must be one of 'spa', 'opt', 'em'"),
        (PairwisePMF(split=0), "`split` must be an integer of at least 1"),
        (PairwisePMF(2, split=4), "`split` must leave columns for the second group: below 4; got 4"),
        (PairwisePMF(floor=0.0), "`floor` must be a small positive number"),
        (PairwisePMF(tol=-1.0), "`tol` must not be negative"),
    ],
)
def test_parameters_out_of_range(estimator, sentence):
    with pytest.raises(InputError, match=sentence):
        estimator.fit(separable_law().sample(50, rng=0))


def test_em_needs_rows():
    with pytest.raises(InputError, match='method="em" reads rows, so it cannot be fitted from pairs'):
        PairwisePMF(2, method="em").fit_marginals(exact_pairs(separable_law()))


def test_columns_never_seen_together_are_named():
    X = separable_law().sample(60, rng=0).astype(object)
    X[:30, 3] = None
    X[30:, 0] = None
    X[30:, 1] = None
    with pytest.raises(InputError, match="No row holds a value of 'x3' together with values of the columns"):
        CoupledPMF(2).fit(X)
    with pytest.raises(InputError, match="No row holds both values of"):
        PairwisePMF(2).fit(X)


def test_a_column_without_values_is_refused():
    X = separable_law().sample(60, rng=0).astype(object)
    X[:, 2] = None
    with pytest.raises(InputError, match="'x2'"):
        CoupledPMF(2, kinds={"x2": "integer"}).fit(X)


def test_too_few_triples_to_see_every_column():
    X = random_law(sizes=(2,) * 7).sample(50, rng=0)
    with pytest.raises(InputError, match=r"With triples=0.02, 1 of 35 triples are used, and columns \[3, 4, 5, 6\]"):
        CoupledPMF(2, triples=0.02).fit(X)


def test_bins_of_several_values_are_no_states():
    X = np.random.default_rng(0).integers(0, 9, size=(50, 3))
    schema = Profile.of(X).schema()
    axes = (BinnedAxis([2.5, 5.5]),) * 3
    with pytest.raises(InputError, match="The bins of 'x0' hold more than one value each"):
        CoupledPMF(2, tol=0.1).fit_marginals(SubsetMarginals.of(X, schema, axes, [(0, 1, 2)]))


def test_a_short_run_warns():
    with pytest.warns(ConvergenceWarning, match=r"CoupledADMM stopped at the limit of 1 steps .* Raise max_iter"):
        CoupledPMF(2, max_iter=1, random_state=0).fit(separable_law().sample(100, rng=0))
