"""ClassModel: probabilities against plain loops, files, and damaged files."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.joint.cases import build, cases, random_rows
from tests.joint.test_serialization import WRONG, changed, leaves, parts, rebuilt

import jointwise
from jointwise import ClassModel, JointDensity
from jointwise.dictionary import Dictionary
from jointwise.exceptions import FileFormatError, InputError, UnknownNameError, UnseenCategoryWarning
from jointwise.families import Gaussian, Laplace
from jointwise.joint.classes import SecondDensity, read_model, with_levels
from jointwise.joint.standardisation import ClassStandardisation
from jointwise.joint.sum import WeightedSum
from jointwise.tables.variables import Schema, Variable

JOB = Variable("job", "categorical", categories=("cook", "nurse"), dtype="string")
KIND = Variable("kind", "categorical", categories=(1, 2, 3), dtype="int64")


def drawn(rng, variables, dictionaries, n_components=3):
    """Return a density that is nowhere zero, so that both densities give probabilities for every row."""
    coefficients = [rng.dirichlet(np.ones(d.n_atoms), n_components).T for d in dictionaries]
    return build(variables, dictionaries, rng.dirichlet(np.ones(n_components)), coefficients, "dict")


def class_model(seed=0, share=0.3):
    """Return a model of three classes with two standardised columns and a category between them."""
    rng = np.random.default_rng(seed)
    numbers = [Variable("a", "continuous"), Variable("b", "continuous")]
    atoms = [Dictionary((Gaussian(rng.normal(0, 2, 3), 1.0),)), Dictionary((Laplace(rng.normal(0, 2, 2), 1.5),))]
    labels = [Dictionary.categories(2), Dictionary.categories(3)]
    first = drawn(rng, [numbers[0], JOB, numbers[1], KIND], [atoms[0], labels[0], atoms[1], labels[1]])
    mixed = [Variable("mix 1", "continuous"), Variable("mix 2", "continuous")]
    second = drawn(rng, [*mixed, JOB, KIND], [*atoms, *labels])
    maps = rng.normal(size=(3, 2, 2)) + 2 * np.eye(2)
    standardisation = ClassStandardisation(np.array([0, 2]), rng.normal(size=(3, 2)), maps)
    return ClassModel(first, "kind", SecondDensity(standardisation, second, share))


def table(n=12, seed=1):
    rng = np.random.default_rng(seed)
    job = np.array(["cook", "nurse", None], dtype=object)[rng.integers(0, 3, n)]
    return {"a": rng.normal(0, 2, n), "job": job, "b": rng.normal(0, 2, n)}


def plain_probabilities(model, columns):
    """Return the probabilities row by row and class by class, from the pdf of both densities."""
    second, out = model.second, []
    for a, job, b in zip(*columns.values(), strict=True):
        said = np.empty((2, 3))
        for c, label in enumerate(model.classes):
            given = {"job": [job], "kind": [label]}
            said[0, c] = model.density.pdf({"a": [a], "b": [b], **given})[0]
            W = second.standardisation.maps[c]
            z = W.T @ (np.array([a, b]) - second.standardisation.means[c])
            said[1, c] = second.density.pdf({"mix 1": z[:1], "mix 2": z[1:], **given})[0] * abs(np.linalg.det(W))
        said /= said.sum(axis=1, keepdims=True)
        out.append((1 - second.share) * said[0] + second.share * said[1])
    return np.array(out)


# ---- probabilities -----------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6), st.floats(0, 1))
def test_probabilities_are_those_of_plain_loops(seed, share):
    model, columns = class_model(seed, share), table(6, seed)
    np.testing.assert_allclose(model.predict_proba(columns), plain_probabilities(model, columns), rtol=1e-6, atol=1e-9)


@settings(deadline=None, max_examples=25)
@given(cases())
def test_without_a_second_density_they_are_those_of_the_joint_density(case):
    density, rng = case.density, case.rng
    labelled = [v.name for v in density.schema if v.categories is not None]
    assume(labelled and len(density.schema) > 1)
    target = labelled[-1]
    rows, n = random_rows(rng, density, 5), density.schema.index(target)
    for i, variable in enumerate(density.schema):
        if variable.categories is not None:  # only known categories can be written down
            rows[~np.isin(rows[:, i], np.arange(len(variable.categories))), i] = np.nan
    found = ClassModel(density, target).probabilities(np.delete(rows, n, axis=1))
    columns = {v.name: [v.decode_value(x) for x in rows[:, i]] for i, v in enumerate(density.schema)}
    np.testing.assert_allclose(found, density.predict_proba(target, columns), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_gaps_absent_columns_and_unseen_categories_are_integrated_out():
    model, columns = class_model(), table()
    columns["job"][:] = None
    expected = model.predict_proba(columns)
    np.testing.assert_array_equal(model.predict_proba({name: columns[name] for name in ("b", "a")}), expected)
    columns["job"][:] = "astronaut"
    with pytest.warns(UnseenCategoryWarning, match="astronaut"):
        np.testing.assert_array_equal(model.predict_proba(columns), expected)
    columns["b"][:] = np.nan
    with pytest.warns(UnseenCategoryWarning):
        found = model.predict_proba(columns)
    np.testing.assert_allclose(found, model.density.predict_proba("kind", {"a": columns["a"]}))


def test_the_predicted_class_is_the_most_probable_one():
    model, columns = class_model(), table(40)
    predicted = model.predict(columns)
    assert predicted.dtype == np.int64
    np.testing.assert_array_equal(predicted, np.array(model.classes)[model.predict_proba(columns).argmax(axis=1)])


def test_repr_names_class_and_features():
    assert repr(class_model()) == "ClassModel('kind' of 3 classes, by 3 features; 30% by a second density)"
    assert repr(ClassModel(class_model().density, "job")) == "ClassModel('job' of 2 classes, by 3 features)"


# ---- parts that do not fit -------------------------------------------------------------------------------


def with_second(**changes):
    return replace(class_model().second, **changes)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.sets(st.integers(0, 2), min_size=1))
def test_fewer_levels_are_a_condition(seed, kept):
    """Any sum of experts, any variable: the density given the levels, with the levels renumbered."""
    models = [class_model(seed), class_model(seed + 1)]
    parts = [model.density.mixture for model in models]
    density = replace(models[0].density, mixture=WeightedSum(parts, [0.3, 0.7]))
    codes = sorted(kept)
    fewer = with_levels(density, "kind", np.array(codes))
    assert fewer.schema["kind"].categories == tuple(KIND.categories[code] for code in codes)
    rows = {**table(), "kind": np.array([KIND.categories[code] for code in codes])[np.arange(12) % len(codes)]}
    expected = density.logpdf(rows) - np.log(density.probability({"kind": set(fewer.schema["kind"].categories)}))
    np.testing.assert_allclose(fewer.logpdf(rows), expected, rtol=1e-9)
    np.testing.assert_allclose(ClassModel(fewer, "kind").predict_proba(table()).sum(axis=1), 1)
    fewer = with_levels(density, "job", np.array([1]))
    np.testing.assert_allclose(fewer.probability({"job": "nurse"}), 1)


def standardisation(**changes):
    return replace(class_model().second.standardisation, **changes)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda m: ClassModel(m.density, "a"), "must be categorical; 'a' is continuous"),
        (lambda m: ClassModel(m.density, "job", m.second), "must be the last variable"),
        (lambda m: with_second(share=-0.1), "from 0 to 1"),
        (lambda m: with_second(share=float("nan")), "from 0 to 1"),
        (lambda m: with_second(share=True), "from 0 to 1"),
        (lambda m: standardisation(columns=np.array([2, 0])), "in rising order"),
        (lambda m: standardisation(columns=np.array([0, 0])), "in rising order"),
        (lambda m: standardisation(columns=np.array([-1, 0])), "in rising order"),
        (lambda m: standardisation(means=np.zeros((3, 3))), "`means` must hold"),
        (lambda m: standardisation(means=np.full((3, 2), np.inf)), "`means` must hold"),
        (lambda m: standardisation(maps=np.full((3, 2, 2), np.nan)), "`maps` must hold"),
        (lambda m: standardisation(maps=np.zeros((2, 2, 2))), "`maps` must hold"),
        (lambda m: standardisation(maps=np.ones((3, 2, 2))), "must have an inverse"),
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_are_refused(make, words):
    with pytest.raises(InputError, match=words):
        make(class_model())


def test_an_unknown_class_is_refused_by_name():
    with pytest.raises(UnknownNameError, match="did you mean 'kind'"):
        ClassModel(class_model().density, "kinds")


def densities_that_do_not_fit():
    good = class_model().second.density
    schema, mixture = good.schema, good.mixture
    other = Variable("job", "categorical", categories=("cook", "smith"), dtype="string")
    yield "other classes", good.marginal(["mix 1", "mix 2", "kind", "job"])
    yield "no class", good.marginal(["kind", "job", "mix 1", "mix 2"])
    yield "too few columns", good.marginal(["mix 1", "job", "kind"])
    yield "none", good.marginal(["kind"])
    yield "another feature", JointDensity(Schema((*schema.variables[:2], other, KIND)), mixture)


@pytest.mark.parametrize("density", [pytest.param(d, id=name) for name, d in densities_that_do_not_fit()])
def test_a_second_density_of_other_variables_is_refused(density):
    model = class_model()
    with pytest.raises(InputError, match="second density must"):
        replace(model, second=replace(model.second, density=density))


@pytest.mark.parametrize("columns", [[0, 1], [2, 3], [0, 9]])
def test_columns_that_are_no_numbers_are_refused(columns):
    model = class_model()
    second = replace(model.second, standardisation=standardisation(columns=np.array(columns)))
    with pytest.raises(InputError, match="must be numbers among 3 features"):
        replace(model, second=second)


# ---- files ---------------------------------------------------------------------------------------------------


@pytest.fixture
def good(tmp_path):
    class_model().save(tmp_path / "model.jw")
    return (tmp_path / "model.jw").read_bytes()


def test_a_model_read_back_gives_the_same_probabilities_to_the_bit(tmp_path):
    for model in (class_model(), ClassModel(class_model().density, "job")):
        model.save(str(tmp_path / "model.jw"))
        back = ClassModel.load(str(tmp_path / "model.jw"))
        columns = table() | {"kind": [1, 2, 3] * 4}
        np.testing.assert_array_equal(back.predict_proba(columns), model.predict_proba(columns))
        assert (back.target, back.share) == (model.target, model.share)
        back.save(tmp_path / "again.jw")
        assert (tmp_path / "again.jw").read_bytes() == (tmp_path / "model.jw").read_bytes()


def test_load_reads_the_joint_density_of_it(tmp_path, good):
    density = jointwise.load(tmp_path / "model.jw")
    assert isinstance(density, JointDensity)
    density.save(tmp_path / "density.jw")
    class_model().density.save(tmp_path / "same.jw")
    assert (tmp_path / "density.jw").read_bytes() == (tmp_path / "same.jw").read_bytes()
    assert b"classes" not in (tmp_path / "same.jw").read_bytes()


def test_a_density_alone_is_recognised(tmp_path):
    class_model().density.save(tmp_path / "density.jw")
    assert isinstance(read_model(tmp_path / "density.jw"), JointDensity)
    with pytest.raises(InputError, match=r"density\.jw holds a joint density alone"):
        ClassModel.load(tmp_path / "density.jw")


def refused(path, data):
    """Write the bytes, check that reading them fails with one clear sentence, and return it."""
    path.write_bytes(data)
    with pytest.raises(FileFormatError) as caught:
        ClassModel.load(path)
    message = str(caught.value)
    assert path.name in message
    assert message.endswith(".")
    assert "\n" not in message
    return message


def test_a_wrong_value_anywhere_is_refused_or_harmless(tmp_path, good):
    header, payload = parts(good)
    path = tmp_path / "wrong.jw"
    rng = np.random.default_rng(0)
    columns, n_refused = table(3), 0
    for place in leaves(header["content"]["classes"], ("content", "classes")):
        for wrong in (WRONG[i] for i in rng.choice(len(WRONG), 5, replace=False)):
            path.write_bytes(rebuilt(changed(header, place, wrong), payload))
            try:
                found = read_model(path)
            except FileFormatError as error:
                assert str(error).endswith(".")  # noqa: PT017  # either outcome is right
                n_refused += 1
                continue
            assert isinstance(found, ClassModel)
            np.testing.assert_allclose(found.predict_proba(columns).sum(axis=1), 1)
    assert n_refused > 150


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (("target",), "job", "must be the last variable"),
        (("target",), "a", "must be categorical"),
        (("target",), "nothing", "Unknown variable 'nothing'"),
        (("second", "share"), 1.5, "from 0 to 1"),
        (("second", "share"), "half", "from 0 to 1"),
        (("second", "standardisation", "columns"), [0, 10**30], "positions of columns"),
        (("second", "standardisation", "columns"), [0, 1.5], "positions of columns"),
        (("second", "standardisation", "columns"), [True, 2], "positions of columns"),
        (("second", "standardisation", "columns"), [0, 1], "must be numbers among 3 features"),
        (("second", "standardisation", "columns"), [], "at least one"),
        (("second", "density", "classes"), {}, "its content must have the parts"),
        (("second", "code"), "x", "second density must have the parts"),
        (("code",), "x", "its classes must have the parts"),
    ],
)  # fmt: skip
def test_a_wrong_part_is_named(tmp_path, good, place, value, words):
    header, payload = parts(good)
    tree = header["content"]["classes"]
    for key in place[:-1]:
        tree = tree[key]
    tree[place[-1]] = value
    assert words in refused(tmp_path / "wrong.jw", rebuilt(header, payload))
    assert isinstance(jointwise.load(tmp_path / "wrong.jw"), JointDensity)  # which ignores that part


def with_numbers(data, position, value):
    """Return the file with one value throughout an array; the means come first, then the maps."""
    header, payload = parts(data)
    position += header["content"]["classes"]["second"]["standardisation"]["means"]["$array"]
    sizes = [int(np.prod(shape)) for shape in header["arrays"]]
    numbers = np.frombuffer(payload, "<f8").copy()
    numbers[sum(sizes[:position]) : sum(sizes[: position + 1])] = value
    return rebuilt(header, numbers.tobytes())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("position", range(4))
def test_maps_and_means_that_are_no_numbers_are_refused(tmp_path, good, position, value):
    assert "must hold finite numbers" in refused(tmp_path / "wrong.jw", with_numbers(good, position, value))


@pytest.mark.parametrize("value", [0.0, 1.0, -2.0])
@pytest.mark.parametrize("position", range(1, 4))
def test_maps_without_an_inverse_are_refused(tmp_path, good, position, value):
    assert "must have an inverse" in refused(tmp_path / "wrong.jw", with_numbers(good, position, value))


@pytest.mark.parametrize("value", [1e308, -1e308, 5e-324])
@pytest.mark.parametrize("position", range(4))
def test_numbers_at_the_limits_of_floats_do_no_harm(tmp_path, good, position, value):
    """There, rounding may give a singular matrix a determinant."""
    path = tmp_path / "far.jw"
    path.write_bytes(with_numbers(good, position, value))
    try:
        found = ClassModel.load(path).predict_proba(table())
    except FileFormatError:
        return
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_a_missing_part_is_refused(tmp_path, good):
    header, payload = parts(good)
    for path in leaves(header["content"]["classes"]):
        if path and path[-1] in {"target", "second", "share", "standardisation", "columns", "means", "maps", "density"}:
            tree = json.loads(json.dumps(header))
            place = tree["content"]["classes"]
            for key in path[:-1]:
                place = place[key]
            del place[path[-1]]
            refused(tmp_path / "less.jw", rebuilt(tree, payload))
