"""Files: what is read back, what is refused, and files that earlier versions wrote."""

import contextlib
import hashlib
import json
import os
import pickle
import struct
import subprocess
import sys
import threading
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.joint.cases import build, cases, random_density, random_event, random_rows, single
from tests.joint.experts import Opaque

import jointwise
from jointwise.dictionary import Dictionary
from jointwise.exceptions import FileFormatError, InputError
from jointwise.families import Cauchy, Exponential, Gaussian, Lattice, PointMass
from jointwise.joint import ClassModel, JointDensity, WeightedSum, serialization
from jointwise.joint import density as density_module
from jointwise.tables.variables import Variable

GOLDEN = Path(__file__).parent / "golden"
PREFIX = struct.Struct("<10sIQ")
X = Variable("x", "continuous")


def mixed_density():
    """Every kind of variable and atom that a file can hold."""
    rng = np.random.default_rng(11)
    density = random_density(rng, ["spiky", "inflated", "grade", "label", "smooth"], 3, "pandas")
    return density.condition({density.names[4]: (-2.0, None)})


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "density.jw"
    mixed_density().save(path)
    return path.read_bytes()


# ---- round trip ------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=25)
@given(cases())
def test_a_density_read_back_gives_the_same_answers(tmp_path_factory, case):
    density, rng = case.density, case.rng
    path = tmp_path_factory.mktemp("trip") / "density.jw"
    density.save(path)
    back = jointwise.load(path)
    assert back.schema == density.schema
    rows = random_rows(rng, density, 5)
    np.testing.assert_array_equal(back.mixture.logpdf(rows), density.mixture.logpdf(rows))
    np.testing.assert_array_equal(back.mixture.cdf(rows), density.mixture.cdf(rows))
    assert back.probability(event := random_event(rng, density, density.names)) == density.probability(event)
    np.testing.assert_array_equal(back.mixture.sample(5, np.random.default_rng(0)),
                                  density.mixture.sample(5, np.random.default_rng(0)))  # fmt: skip
    back.save(path.with_name("again.jw"))
    assert path.with_name("again.jw").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("event", [(0.0, None), (None, 0.0), (None, None), (-1.0, 1.0)])
def test_truncated_atoms_with_open_ends_are_written(tmp_path, event):
    part = single(X, Dictionary((Cauchy(0.0, 1.0), Gaussian(0.0, 1.0)))).condition({"x": event})
    part.save(tmp_path / "part.jw")
    back = JointDensity.load(tmp_path / "part.jw")
    np.testing.assert_array_equal(back.quantile("x", [0.1, 0.5, 0.9]), part.quantile("x", [0.1, 0.5, 0.9]))


@pytest.mark.parametrize("name", ["", "größe", "a\nb", "\x00", "\ud800", "名前", '"$array"'], ids=ascii)
def test_any_text_can_be_a_name_or_category(tmp_path, name):
    variable = Variable(name, "categorical", categories=(name, 1, 2.5, False), dtype="categorical")
    density = single(variable, Dictionary.categories(4))
    density.save(tmp_path / "odd.jw")
    assert JointDensity.load(tmp_path / "odd.jw").schema == density.schema


def test_path_may_be_text(tmp_path):
    density = mixed_density()
    density.save(str(tmp_path / "text.jw"))
    assert jointwise.load(str(tmp_path / "text.jw")).names == density.names


# ---- writing ---------------------------------------------------------------------------------------------


def test_a_write_leaves_one_file(tmp_path):
    for _ in range(2):
        mixed_density().save(tmp_path / "density.jw")
    assert [p.name for p in tmp_path.iterdir()] == ["density.jw"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_alone(tmp_path, monkeypatch, step):
    path = tmp_path / "density.jw"
    mixed_density().save(path)
    before = path.read_bytes()

    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os if step == "fsync" else Path, step, fail)
    with pytest.raises(OSError, match="No space left"):
        single(X, Dictionary((Gaussian(0.0, 1.0),))).save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["density.jw"]


def test_a_long_file_name_has_room_for_its_twin(tmp_path):
    mixed_density().save(tmp_path / ("n" * 255))
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(FileNotFoundError):
        mixed_density().save(tmp_path / "nowhere" / "density.jw")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_density_goes_through_a_pipe(tmp_path, monkeypatch):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    density = mixed_density()

    def send(data):
        with contextlib.suppress(BrokenPipeError):  # a reader who refuses it goes away
            pipe.write_bytes(data)

    def through(data):
        writer = threading.Thread(target=send, args=(data,))
        writer.start()
        try:
            return JointDensity.load(pipe)
        finally:
            writer.join(timeout=30)

    writer = threading.Thread(target=density.save, args=(pipe,))
    writer.start()
    whole = pipe.read_bytes()
    writer.join(timeout=30)
    assert pipe.is_fifo()
    assert through(whole).logpdf(density.sample(3, rng=0)) == pytest.approx(density.logpdf(density.sample(3, rng=0)))
    with pytest.raises(FileFormatError, match="does not begin as one"):
        through(b"")
    monkeypatch.setattr(serialization, "CHUNK", 100)
    monkeypatch.setattr(serialization, "MAX_BYTES", 300)
    with pytest.raises(FileFormatError, match=r"pipe is too long: a jointwise density has at most 300 bytes"):
        through(whole)
    assert pipe.is_fifo()


def test_a_density_too_large_for_a_file_is_refused_before_writing(tmp_path, monkeypatch):
    for limit in ("MAX_BYTES", "MAX_JSON"):
        monkeypatch.setattr(serialization, limit, 100)
        with pytest.raises(InputError, match="a file may take at most"):
            mixed_density().save(tmp_path / "density.jw")
        monkeypatch.undo()
    assert not list(tmp_path.iterdir())


# ---- damaged and foreign files -----------------------------------------------------------------------------


def refused(path, data):
    """Write the bytes and check that reading them is one clear sentence; return it."""
    path.write_bytes(data)
    with pytest.raises(FileFormatError) as caught:
        JointDensity.load(path)
    message = str(caught.value)
    assert path.name in message
    assert message.endswith(".")
    assert "\n" not in message
    return message


def test_an_absent_file_is_said_to_be_absent(tmp_path):
    with pytest.raises(FileNotFoundError):
        jointwise.load(tmp_path / "absent.jw")


def test_any_flipped_byte_is_noticed(tmp_path, good):
    rng = np.random.default_rng(0)
    places = {*range(30), *range(len(good) - 40, len(good)), *rng.integers(0, len(good), 150).tolist()}
    for place in places:
        data = bytearray(good)
        data[place] ^= int(rng.integers(1, 256))
        refused(tmp_path / "flipped.jw", bytes(data))


def test_a_file_cut_short_anywhere_is_noticed(tmp_path, good):
    for length in {*range(70), *range(0, len(good), 97), *range(len(good) - 40, len(good))}:
        refused(tmp_path / "cut.jw", good[:length])


def test_a_beginning_with_its_own_checksum_is_noticed(tmp_path, good):
    for length in range(60):
        refused(tmp_path / "cut.jw", good[:length] + hashlib.sha256(good[:length]).digest())


def test_a_file_with_more_behind_it_is_noticed(tmp_path, good):
    for tail in (b"\x00", b"more", good):
        assert "damaged" in refused(tmp_path / "long.jw", good + tail)


class Bomb:
    def __reduce__(self):
        return (os.mkdir, ("bomb-went-off",))


def test_foreign_files_are_not_read_let_alone_run(tmp_path, monkeypatch, good):
    monkeypatch.chdir(tmp_path)
    archive = tmp_path / "archive.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("a.txt", "text")
    foreign = [b"", b"\n", b"just some text", b"{}", archive.read_bytes(), pickle.dumps(Bomb()), b"\x00" * 500,
               serialization.MAGIC, serialization.MAGIC + pickle.dumps(Bomb())]  # fmt: skip
    for data in foreign:
        refused(tmp_path / "foreign.jw", data)
    # a pickle where the JSON text should be, with a right checksum
    bomb = pickle.dumps(Bomb())
    refused(tmp_path / "foreign.jw", sealed(PREFIX.pack(serialization.MAGIC, 1, len(bomb)) + bomb))
    assert not (tmp_path / "bomb-went-off").exists()


# ---- hostile files with a right checksum -------------------------------------------------------------------


def sealed(body):
    return body + hashlib.sha256(body).digest()


def parts(data):
    """Header as a tree and the arrays' bytes."""
    length = PREFIX.unpack_from(data)[2]
    start = PREFIX.size + length
    return json.loads(data[PREFIX.size : start]), data[start:-32]


def rebuilt(header, payload, *, version=2, length=None, text=None):
    text = json.dumps(header).encode() if text is None else text
    return sealed(PREFIX.pack(serialization.MAGIC, version, len(text) if length is None else length) + text + payload)


def test_the_helper_rebuilds_the_file_as_it_was(tmp_path, good):
    (tmp_path / "same.jw").write_bytes(rebuilt(*parts(good)))
    assert JointDensity.load(tmp_path / "same.jw").names == mixed_density().names


@pytest.mark.parametrize("version", [0, 3, 2**32 - 1])
def test_another_version_is_named(tmp_path, good, version):
    message = refused(tmp_path / "newer.jw", rebuilt(*parts(good), version=version))
    assert f"format version {version}" in message
    assert "reads versions 1, 2" in message


@pytest.mark.parametrize("length", [0, 10**6, 2**63, 2**64 - 1])
def test_a_header_length_that_lies_is_refused(tmp_path, good, length):
    refused(tmp_path / "length.jw", rebuilt(*parts(good), length=length))


@pytest.mark.parametrize(
    "text",
    [b"", b"null", b"[]", b"3", b'"text"', b"{}", b"{", b"\xff\xfe", b'{"arrays": [], "content": {}}', b"NaN",
     b"[" * 100_000, b'{"content":' * 50_000, b'{"arrays": ' + b"[" * 50_000 + b"]" * 50_000 + b', "content": {}}',
     b"1" * 10_000, '{"arrays": []}'.encode("utf-16")],
    ids=lambda t: t[:12].decode("latin1"),
)  # fmt: skip
def test_json_that_is_no_header_is_refused(tmp_path, text):
    refused(tmp_path / "text.jw", rebuilt(None, b"", text=text))


HUGE = 10**30
SHAPES = [[-1], [-3, -2], [0], [0, HUGE], [HUGE], [2**40], [2**31, 2**31], [1.0], ["3"], [True], [None], [[1]], 3,
          "33", None, {}, [1, 1, 1], [1] * 1000]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: str(shape)[:12])
def test_impossible_shapes_are_refused_without_memory(tmp_path, good, shape):
    header, payload = parts(good)
    path = tmp_path / "shape.jw"
    for position in (0, len(header["arrays"]) - 1):
        hostile = {**header, "arrays": [*header["arrays"]]}
        hostile["arrays"][position] = shape
        data = rebuilt(hostile, payload)
        tracemalloc.start()
        refused(path, data)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 4_000_000  # the file has some kilobytes


def test_a_short_text_cannot_multiply_a_long_array(tmp_path):
    """One array of 800 kB named ten thousand times would be 8 GB."""
    big = np.full((100_000, 1), 1e-5)
    content = {"schema": {}, "weights": {"$array": 0}, "experts": [{"$array": 0}] * 10_000}
    data = rebuilt({"arrays": [[100_000, 1]], "content": content}, big.tobytes())
    tracemalloc.start()
    assert "out of turn" in refused(tmp_path / "many.jw", data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


def test_payload_beyond_the_arrays_is_refused(tmp_path, good):
    header, payload = parts(good)
    assert "shorter than the file" in refused(tmp_path / "extra.jw", rebuilt(header, payload + bytes(8)))
    assert "longer than the file" in refused(tmp_path / "less.jw", rebuilt(header, payload[:-8]))
    more = {**header, "arrays": [*header["arrays"], [1]]}
    assert "without a place" in refused(tmp_path / "more.jw", rebuilt(more, payload + bytes(8)))


def leaves(tree, path=()):
    """Paths to every value of a tree of dicts and lists, inner ones included."""
    yield path
    children = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, child in children:
        yield from leaves(child, (*path, key))


def changed(tree, path, value):
    if not path:
        return value
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    copy[path[0]] = changed(tree[path[0]], path[1:], value)
    return copy


WRONG = [None, True, -1, 10**400, 1.5, "text", "", [], [[]], {}, {"$array": 0}, {"$array": -1}, {"$array": "0"},
         {"$array": None}, {"family": "gaussian"}]  # fmt: skip


def test_a_wrong_value_anywhere_is_refused_or_harmless(tmp_path, good):
    """Whatever stands in any one place of the header, reading gives a density or a FileFormatError."""
    header, payload = parts(good)
    path = tmp_path / "wrong.jw"
    n_refused = 0
    rng = np.random.default_rng(0)
    for place in leaves(header):
        for wrong in (WRONG[i] for i in rng.choice(len(WRONG), 5, replace=False)):
            path.write_bytes(rebuilt(changed(header, place, wrong), payload))
            try:
                assert isinstance(JointDensity.load(path), JointDensity)
            except FileFormatError as error:
                assert str(error).endswith(".")  # noqa: PT017  # either outcome is right
                n_refused += 1
    assert n_refused > 200


def test_a_missing_or_further_key_is_refused(tmp_path, good):
    header, payload = parts(good)
    for key in header["content"]:
        less = {k: v for k, v in header["content"].items() if k != key}
        refused(tmp_path / "key.jw", rebuilt({**header, "content": less}, payload))
    refused(tmp_path / "key.jw", rebuilt({**header, "content": {**header["content"], "code": "x"}}, payload))
    refused(tmp_path / "key.jw", rebuilt({**header, "more": 1}, payload))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -0.5, 1.5, 1e308, 5e-324])
def test_numbers_off_the_simplex_are_refused(tmp_path, value):
    density = build([X], [Dictionary((Gaussian([0.0, 1.0], 1.0),))], [0.5, 0.5], [np.eye(2)])
    density.save(tmp_path / "density.jw")
    header, payload = parts((tmp_path / "density.jw").read_bytes())
    assert header["arrays"][:3] == [[1], [2], [2, 2]]  # of the experts, of the components, then the coefficients
    for position in (1, 2, 3, 6):
        numbers = np.frombuffer(payload, "<f8").copy()
        numbers[position] = value
        message = refused(tmp_path / "simplex.jw", rebuilt(header, numbers.tobytes()))
        assert "weights" in message or "coefficients[0]" in message


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_atoms_that_are_no_atoms_are_refused(tmp_path, good, value):
    header, payload = parts(good)
    numbers = np.frombuffer(payload, "<f8").copy()
    numbers[-1] = value
    refused(tmp_path / "atoms.jw", rebuilt(header, numbers.tobytes()))


def test_an_unknown_family_is_named(tmp_path, good):
    header, payload = parts(good)
    header["content"]["experts"][0]["dictionaries"][0]["families"][0]["family"] = "os.system"
    assert "Unknown family 'os.system'" in refused(tmp_path / "family.jw", rebuilt(header, payload))


def test_families_nested_without_end_are_refused(tmp_path, good):
    header, payload = parts(good)
    nested = {"family": "gaussian", "loc": 0, "scale": 1}
    for _ in range(400):
        nested = {"family": "truncated", "base": nested, "low": -1, "high": 1}
    header["content"]["experts"][0]["dictionaries"][0]["families"] = [nested]
    refused(tmp_path / "nested.jw", rebuilt(header, payload))


def with_families(header, families):
    return changed(header, ("content", "experts", 0, "dictionaries"), [{"families": families}])


def one_atom(tmp_path, family):
    """Header and payload of a density of one continuous variable with one atom."""
    single(X, Dictionary((family,))).save(tmp_path / "one.jw")
    return parts((tmp_path / "one.jw").read_bytes())


def test_families_within_families_are_quick_or_refused(tmp_path):
    """Each level of truncation used to double the work of every answer: fifteen of them took seconds a draw."""
    header, payload = one_atom(tmp_path, Gaussian(0.0, 1.0))
    nested = header["content"]["experts"][0]["dictionaries"][0]["families"][0]
    for level in range(7):
        nested = {"family": "truncated", "base": nested, "low": -9 + level, "high": 9 - level}
    (tmp_path / "nested.jw").write_bytes(rebuilt(with_families(header, [nested]), payload))
    density = jointwise.load(tmp_path / "nested.jw")
    assert density.mixture.dictionaries[0].families == (Gaussian(0.0, 1.0).truncate(-3, 3),)
    for _ in range(8):
        nested = {"family": "truncated", "base": nested, "low": -9, "high": 9}
    data = rebuilt(with_families(header, [nested]), payload)
    assert "must not be nested more than 8 deep" in refused(tmp_path / "nested.jw", data)


ABSURD = [
    ("gamma", {"shape": 1e308, "scale": 1.0, "origin": 0.0}),
    ("student_t", {"df": 0.01, "loc": 0.0, "scale": 1.0}),
    ("uniform", {"low": -1e308, "high": 1e308}),
    ("generalized_gaussian", {"shape": 1e-3, "loc": 0.0, "scale": 1.0}),
    ("log_normal", {"log_mean": 1e300, "log_std": 1.0, "origin": 0.0}),
    ("beta", {"a": 1e300, "b": 1e300, "low": 0.0, "high": 1.0}),
]


@pytest.mark.parametrize(("family", "parameters"), ABSURD, ids=[family for family, _ in ABSURD])
def test_absurd_parameters_are_refused(tmp_path, family, parameters):
    header, payload = one_atom(tmp_path, PointMass(0.0))
    header = {**header, "arrays": header["arrays"][:3]}
    data = rebuilt(with_families(header, [{"family": family, **parameters}]), payload[:24])
    assert f"of {family} must be" in refused(tmp_path / "absurd.jw", data)


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        ("dtype", "date", "holds no categories"),
        ("dtype", "int64", "holds integers of 64 bits"),
        ("dtype", "bool", "holds booleans"),
        ("categories", ["a", 1], "holds text"),
        ("container", "polars", None),
        ("container", "spark", "`container` must be one of"),
    ],
)
def test_kind_type_categories_and_container_are_checked_together(tmp_path, place, value, sentence):
    label = Variable("label", "categorical", categories=("a", "b"), dtype="string")
    single(label, Dictionary.categories(2)).save(tmp_path / "label.jw")
    header, payload = parts((tmp_path / "label.jw").read_bytes())
    path = ("content", "schema") if place == "container" else ("content", "schema", "variables", 0)
    data = rebuilt(changed(header, (*path, place), value), payload)
    if sentence is None:
        (tmp_path / "label.jw").write_bytes(data)
        assert jointwise.load(tmp_path / "label.jw").sample(3, rng=0).shape == (3, 1)
    else:
        assert sentence in refused(tmp_path / "label.jw", data)


def test_messages_stay_short_with_long_names(tmp_path, good):
    header, payload = parts(good)
    path = tmp_path / "long.jw"
    for place in leaves(header):
        for wrong in ("n" * 100_000, {"n" * 100_000: 1}):
            path.write_bytes(rebuilt(changed(header, place, wrong), payload))
            try:
                assert len(repr(jointwise.load(path))) < 1000
            except FileFormatError as error:
                assert len(str(error)) < 1000 + len(str(path))  # noqa: PT017  # either outcome is right


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_has_not_are_refused(tmp_path, good, number):
    header, payload = parts(good)
    text = json.dumps(changed(header, ("content", "schema", "variables", 0, "observed", 0), 17)).encode()
    data = rebuilt(None, payload, text=text.replace(b"17", number.encode(), 1))
    assert f"{number}, which is no number of JSON" in refused(tmp_path / "number.jw", data)


def mutated(rng, header, payload):
    """A file with a right checksum and one to three things wrong: values, keys, bytes of the text, numbers, lengths."""
    text, numbers = None, np.frombuffer(payload, "<f8").copy()
    for _ in range(rng.integers(1, 4)):
        places = list(leaves(header))
        place, other = (places[i] for i in rng.integers(len(places), size=2))
        match rng.choice(5, p=[0.1, 0.1, 0.6, 0.1, 0.1]):
            case 0:
                header = changed(header, place, WRONG[rng.integers(len(WRONG))])
            case 1:
                header = changed(header, place, at(header, other))
            case 2:
                of_atoms = -rng.integers(1, 13)  # the numbers of the atoms come last, after weights and coefficients
                numbers[of_atoms] = rng.choice([np.nan, -1.0, 0.0, 1e308, 5e-324, 3.0, rng.normal(), 1e9])
            case 3 if place and isinstance(place[-1], str):
                header = changed(
                    header, place[:-1], {k: v for k, v in at(header, place[:-1]).items() if k != place[-1]}
                )
            case _:
                text = bytearray(json.dumps(header).encode())
                text[rng.integers(len(text))] = rng.integers(256)
        if text is not None or not isinstance(header, dict):
            break
    cut = len(payload) if rng.random() < 0.9 else int(rng.integers(len(payload)))
    return rebuilt(header, numbers.tobytes()[:cut], text=None if text is None else bytes(text))


def at(tree, path):
    for key in path:
        tree = tree[key]
    return tree


def test_mutated_files_are_read_and_used_or_refused(tmp_path):
    """Whatever a stranger did to a file, loading it is a FileFormatError or a density that answers and draws."""
    rng = np.random.default_rng(5)
    golden = [(GOLDEN / "version-2.jw").read_bytes()]
    mixed_density().save(tmp_path / "mixed.jw")
    sources = [parts(data) for data in [*golden, (tmp_path / "mixed.jw").read_bytes()]]
    path, n_read = tmp_path / "mutated.jw", 0
    for trial in range(400):
        path.write_bytes(mutated(rng, *sources[trial % 2]))
        try:
            density = JointDensity.load(path)
        except FileFormatError as error:
            assert str(path) in str(error)  # noqa: PT017  # either outcome is right
            assert len(str(error)) < 1000 + len(str(path))  # noqa: PT017
            continue
        n_read += 1
        rows = density.mixture.sample(20, np.random.default_rng(trial))
        assert np.isfinite(rows).all()
        assert not np.isnan(density.mixture.logpdf(rows)).any()
        cdf = density.mixture.cdf(rows)
        assert ((cdf >= 0) & (cdf <= 1)).all()
        density.save(tmp_path / "again.jw")
        assert jointwise.load(tmp_path / "again.jw").schema == density.schema
    assert 20 < n_read < 200


# ---- memory ------------------------------------------------------------------------------------------------


def peak_of_loading(path):
    """Megabytes that a process of its own takes at most to read a file, beyond what it takes without."""
    code = """
import resource, sys
from jointwise.exceptions import FileFormatError
from jointwise.joint import JointDensity
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    JointDensity.load(sys.argv[1])
except FileFormatError:
    pass
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / (2**20 if sys.platform == "darwin" else 2**10))
"""
    return float(subprocess.run([sys.executable, "-c", code, path], check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(sys.platform == "win32", reason="has no getrusage")
@pytest.mark.parametrize(
    ("key", "unit"),
    [("arrays", "[]"), ("content", "[[]]"), ("content", '{"a":0}'), ("content", '"ab"'), ("content", "[" * 3000)],
)
def test_a_long_header_takes_little_memory(tmp_path, key, unit):
    """A header of 5.6 million empty arrays took 1.9 GB before it was refused."""
    n = (serialization.MAX_JSON - 100) // (len(unit) + 1)
    header = {"arrays": "[]", "content": "{}"} | {key: "[" + ",".join([unit] * n) + "]"}
    text = "{" + ",".join(f'"{name}":{value}' for name, value in header.items()) + "}"
    payload = bytes(8 * n) if key == "arrays" else b""
    (tmp_path / "long.jw").write_bytes(rebuilt(None, payload, text=text.encode()))
    assert peak_of_loading(tmp_path / "long.jw") < 400 + len(payload) / 2**20


def test_more_arrays_than_numbers_are_refused_before_they_are_made(tmp_path):
    data = rebuilt({"arrays": [[]] * 1000, "content": {}}, bytes(8 * 999))
    assert "longer than the file" in refused(tmp_path / "many.jw", data)


@pytest.mark.parametrize("limit", ["MAX_BRANCHES", "MAX_DEPTH"])
def test_a_text_with_too_much_in_it_is_not_parsed(tmp_path, good, monkeypatch, limit):
    monkeypatch.setattr(serialization, limit, 5)
    monkeypatch.setattr(serialization.json, "loads", None)
    assert "lists and objects" in refused(tmp_path / "branches.jw", good)


def test_a_density_with_too_many_parts_is_refused_before_writing(tmp_path, monkeypatch):
    monkeypatch.setattr(serialization, "MAX_BRANCHES", 5)
    with pytest.raises(InputError, match="too many variables"):
        mixed_density().save(tmp_path / "density.jw")
    assert not list(tmp_path.iterdir())


TREES = st.recursive(
    st.none() | st.integers(-9, 9) | st.text('[]{}"\\ab'),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('[]{}"\\ab', max_size=4), inner, max_size=4),
)


def twin_of_branches(tree):
    """Number of lists and dicts of a parsed tree, and their depth."""
    if not isinstance(tree, dict | list):
        return 0, 0
    inner = [twin_of_branches(child) for child in (tree.values() if isinstance(tree, dict) else tree)]
    return 1 + sum(n for n, _ in inner), 1 + max((depth for _, depth in inner), default=0)


@given(TREES, st.sampled_from([None, 1]))
def test_lists_and_objects_are_counted_without_parsing(tree, indent):
    assert serialization.branches(json.dumps(tree, indent=indent).encode()) == twin_of_branches(tree)


def test_a_file_beyond_the_limit_is_not_read(tmp_path, good, monkeypatch):
    monkeypatch.setattr(serialization, "MAX_BYTES", len(good) - 1)
    assert "has at most" in refused(tmp_path / "large.jw", good)


def test_a_header_beyond_the_limit_is_not_parsed(tmp_path, good, monkeypatch):
    monkeypatch.setattr(serialization, "MAX_JSON", 100)
    assert "JSON text cannot have" in refused(tmp_path / "large.jw", good)


# ---- golden files ------------------------------------------------------------------------------------------


def golden_density():
    """What the golden file of version 1 holds: every kind, a date, spikes, a lattice, truncated atoms."""
    rng = np.random.default_rng(2020)
    variables = [
        Variable("amount", "continuous", spikes=(0.0,), observed=(0.0, 12.5)),
        Variable("visits", "integer", dtype="int64"),
        Variable("day", "continuous", dtype="date"),
        Variable("size", "categorical", categories=("S", "M", "L"), ordered=True, dtype="string"),
        Variable("smoker", "categorical", categories=(False, True), dtype="bool"),
    ]
    dictionaries = [
        Dictionary((Exponential(0.0, [1.0, 3.0]), Gaussian(5.0, 2.0), PointMass(0.0))),
        Dictionary((Lattice(Gaussian([2.0, 8.0], [1.0, 3.0])), PointMass(0.0))),
        Dictionary((Gaussian([18000.0, 18300.0], 60.0),)),
        Dictionary.categories(3),
        Dictionary.categories(2),
    ]
    coefficients = [rng.dirichlet(np.ones(d.n_atoms), size=3).T for d in dictionaries]
    density = build(variables, dictionaries, rng.dirichlet(np.ones(3)), coefficients, "polars")
    return density.condition({"day": ("2019-06-01", None), "amount": (0.0, 10.0)})


ROWS = {
    "amount": [0.0, 1.5, 9.9, None, 11.0],
    "visits": [0, 3, 12, 5, 1],
    "day": ["2019-06-01", "2020-01-01", "2020-06-01", "2019-12-31", "2020-01-01"],
    "size": ["S", "M", "L", None, "S"],
    "smoker": [True, False, None, True, True],
}


def golden_answers(density):
    return {
        "names": list(density.names),
        "logpdf": [None if np.isneginf(v) else v for v in density.logpdf(ROWS).tolist()],
        "cdf": density.cdf(ROWS).tolist(),
        "probability": density.probability({"visits": (2, 6), "size": {"S", "L"}, "amount": 0.0}),
        "mean": {name: str(value) if name == "day" else value for name, value in density.mean().items()
                 if name in {"amount", "visits", "day"}},
        "mode": {name: str(value) for name, value in density.mode().items()},
        "quantile": density.quantile("amount", [0.05, 0.5, 0.95]).tolist(),
        "smoker": density.predict_proba("smoker", ROWS).tolist(),
    }  # fmt: skip


@pytest.mark.parametrize("version", [1, 2])
def test_files_of_all_versions_are_read(version):
    density = jointwise.load(GOLDEN / f"version-{version}.jw")
    expected = json.loads((GOLDEN / "version-1.json").read_text())
    found = golden_answers(density)
    assert found.keys() == expected.keys()
    assert found["names"] == expected["names"]
    assert found["mode"] == expected["mode"]
    assert found["mean"].pop("day") == expected["mean"].pop("day")
    for key in ("logpdf", "cdf", "probability", "quantile", "smoker"):
        # SciPy's special functions may change in the last digits
        np.testing.assert_allclose(np.array(found[key], float), np.array(expected[key], float), rtol=1e-9)
    assert found["mean"] == pytest.approx(expected["mean"], rel=1e-9)
    assert density.schema == golden_density().schema


def test_a_classifier_s_file_of_version_1_is_read():
    model, expected = (
        ClassModel.load(GOLDEN / "version-1-classes.jw"),
        json.loads((GOLDEN / "version-1-classes.json").read_text()),
    )
    assert model.share > 0
    assert list(model.classes) == expected["classes"]
    np.testing.assert_allclose(model.predict_proba(expected["rows"]), expected["probabilities"], rtol=1e-9)


@pytest.mark.parametrize("part", ["weights", "coefficients", "dictionaries", "schema"])
def test_a_file_of_version_1_without_a_part_is_refused(tmp_path, part):
    header, payload = parts((GOLDEN / "version-1.jw").read_bytes())
    del header["content"][part]
    refused(tmp_path / "less.jw", rebuilt(header, payload, version=1))


def test_several_experts_are_read_as_their_sum(tmp_path, good):
    header, payload = parts(good)
    one = header["content"]["experts"][0]
    n_arrays = len(header["arrays"])

    def shifted(tree):
        if isinstance(tree, dict):
            return {k: v + n_arrays - 1 if k == "$array" else shifted(v) for k, v in tree.items()}
        return [shifted(each) for each in tree] if isinstance(tree, list) else tree

    arrays = [[2], *header["arrays"][1:], *header["arrays"][1:]]
    twice = header["content"] | {"experts": [one, shifted(one)]}
    data = np.array([0.25, 0.75]).tobytes() + payload[8:] * 2
    (tmp_path / "two.jw").write_bytes(rebuilt({"arrays": arrays, "content": twice}, data))
    density, single_one = jointwise.load(tmp_path / "two.jw"), mixed_density()
    assert density.n_components == 2 * single_one.n_components
    rows = single_one.sample(30, rng=0)
    np.testing.assert_allclose(density.logpdf(rows), single_one.logpdf(rows), rtol=1e-12)


def test_version_2_is_still_written_as_it_was(tmp_path):
    """A change of these bytes needs a new version number, and a golden file of its own."""
    golden_density().save(tmp_path / "now.jw")
    header, payload = parts((tmp_path / "now.jw").read_bytes())
    stored, numbers = parts((GOLDEN / "version-2.jw").read_bytes())
    assert header == stored
    np.testing.assert_allclose(np.frombuffer(payload, "<f8"), np.frombuffer(numbers, "<f8"), rtol=1e-12)


# ---- several experts -------------------------------------------------------------------------------------


@pytest.fixture
def opaque(monkeypatch):
    """Make files take experts of a second kind."""
    monkeypatch.setitem(density_module.EXPERTS, Opaque.KIND, Opaque)


@pytest.mark.usefixtures("opaque")
def test_a_sum_of_two_kinds_is_read_back_bit_by_bit_and_flat(tmp_path):
    rng = np.random.default_rng(0)
    one = random_density(rng, ["spiky", "label", "lattice"], 3)
    inner = JointDensity(one.schema, WeightedSum((Opaque(one.mixture), one.mixture), [0.3, 0.7]))
    both = JointDensity.mix([inner, JointDensity(one.schema, Opaque(one.mixture.marginal([0, 1, 2])))], [0.2, 0.8])
    both.save(tmp_path / "sum.jw")
    header, _ = parts((tmp_path / "sum.jw").read_bytes())
    assert [expert["kind"] for expert in header["content"]["experts"]] == ["opaque", "product", "opaque"]
    back = jointwise.load(tmp_path / "sum.jw")
    assert isinstance(back.mixture, WeightedSum)
    np.testing.assert_array_equal(back.mixture.shares, both.mixture.shares)
    rows = random_rows(rng, one, 20)
    np.testing.assert_array_equal(back.mixture.logpdf(rows), both.mixture.logpdf(rows))
    back.save(tmp_path / "again.jw")
    assert (tmp_path / "again.jw").read_bytes() == (tmp_path / "sum.jw").read_bytes()


@pytest.mark.parametrize("kind", ["opaque", "sum", "", None, 3, ["product"], {"product": 1}])
def test_an_expert_of_an_unknown_kind_is_refused(tmp_path, good, kind):
    header, payload = parts(good)
    header["content"]["experts"][0]["kind"] = kind
    (tmp_path / "kind.jw").write_bytes(rebuilt(header, payload))
    with pytest.raises(FileFormatError, match="of a kind among 'product'"):
        jointwise.load(tmp_path / "kind.jw")


def test_experts_of_other_variables_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    two, one = random_density(rng, ["label", "smooth"], 2), random_density(rng, ["label"], 2)
    content = two._to_dict()
    content |= {"weights": np.array([0.5, 0.5]), "experts": [*content["experts"], one.mixture.to_dict()]}
    serialization.write(tmp_path / "odd.jw", content)
    with pytest.raises(FileFormatError, match="must have the same variables"):
        jointwise.load(tmp_path / "odd.jw")
    serialization.write(tmp_path / "none.jw", content | {"experts": []})
    with pytest.raises(FileFormatError, match="must have the same variables"):
        jointwise.load(tmp_path / "none.jw")
    for weights in ([0.5], [0.5, -0.5], [0.0, 0.0], [np.inf, 1.0]):
        serialization.write(
            tmp_path / "weights.jw",
            two._to_dict() | {"weights": np.array(weights), "experts": [two.mixture.to_dict()] * 2},
        )
        with pytest.raises(FileFormatError, match="must be 2 numbers"):
            jointwise.load(tmp_path / "weights.jw")


def test_many_experts_take_no_more_memory_than_their_file(tmp_path):
    """Merged, their coefficients would be a matrix of all atoms by all components."""
    rng = np.random.default_rng(0)
    n_experts, n_atoms, n_components = 60, 150, 60
    atoms = Dictionary((Gaussian(np.arange(n_atoms, dtype=float), 1.0),))
    one = build(
        [X], [atoms], np.full(n_components, 1 / n_components), [rng.dirichlet(np.ones(n_atoms), n_components).T]
    )
    content = one._to_dict() | {
        "weights": np.full(n_experts, 1 / n_experts),
        "experts": [one.mixture.to_dict()] * n_experts,
    }
    serialization.write(tmp_path / "many.jw", content)
    size = (tmp_path / "many.jw").stat().st_size
    tracemalloc.start()
    try:
        density = jointwise.load(tmp_path / "many.jw")
        assert density.logpdf({"x": [1.0]})[0] == pytest.approx(one.logpdf({"x": [1.0]})[0], rel=1e-9)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6 * size + (1 << 24)
    assert density.condition({"x": (3.0, 4.0)}).probability({"x": (None, 4.0)}) == pytest.approx(1.0)
