"""Files of data sets, from disk or from a local server, are always checked."""

import gc
import hashlib
import http.server
import io
import sys
import tarfile
import threading
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from jointwise.datasets import _files
from jointwise.datasets._files import Source, data_folder, read_files
from jointwise.exceptions import DatasetError, MissingDependencyError

TEXT = b"1,2,3\n4,5,6\n"
NAME = "part/rows.txt"


def sha256(contents):
    return hashlib.sha256(contents).hexdigest()


def zipped(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:  # a large file may be small when compressed
        for name, contents in members.items():
            archive.writestr(name, contents)
    return file.getvalue()


def tarred(members):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, contents in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(contents)
            archive.addfile(entry, io.BytesIO(contents))
    return file.getvalue()


class Server(http.server.ThreadingHTTPServer):
    """Serves bytes by path, and records the paths asked for."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.served = {}
        self.asked = []

    @property
    def base(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        contents = self.server.served.get(self.path)
        self.send_response(404 if contents is None else 200)
        self.send_header("Content-Length", str(len(contents or b"")))
        self.end_headers()
        self.wfile.write(contents or b"")

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    pytest.importorskip("pooch", reason="downloads need pooch")
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()
    with warnings.catch_warnings():  # the downloader leaves its connection to the garbage collector
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def source(server):
    return Source("toy", f"{server.base}/toy.zip", {NAME: sha256(TEXT)})


def test_folder_is_the_argument_then_the_variable_then_home(monkeypatch, tmp_path):
    monkeypatch.setenv("JOINTWISE_DATA", str(tmp_path / "variable"))
    assert data_folder(tmp_path) == tmp_path
    assert data_folder() == tmp_path / "variable"
    monkeypatch.delenv("JOINTWISE_DATA")
    assert data_folder() == Path.home() / "jointwise_data"


def test_files_on_disk_are_read_without_network_or_pooch(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pooch", None)
    (tmp_path / "toy/part").mkdir(parents=True)
    (tmp_path / "toy" / NAME).write_bytes(TEXT)
    assert read_files(Source("toy", "http://127.0.0.1:1/toy.zip", {NAME: sha256(TEXT)}), tmp_path) == {NAME: TEXT}


@pytest.mark.parametrize(
    "archive",
    [
        zipped({"top/part/rows.txt": TEXT, "other.txt": b"x"}),
        zipped({"inner.zip": zipped({NAME: TEXT})}),
        tarred({"top/part/rows.txt": TEXT, "top/other.txt": b"x"}),
    ],
    ids=["zip", "zip in zip", "tar"],
)
def test_a_download_leaves_the_wanted_files_and_happens_once(server, source, tmp_path, archive):
    server.served["/toy.zip"] = archive
    for _ in range(2):
        assert read_files(source, tmp_path) == {NAME: TEXT}
    assert server.asked == ["/toy.zip"]
    assert [p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()] == [f"toy/{NAME}"]


def test_an_address_may_be_that_of_the_file_itself(server, tmp_path):
    source = Source("toy", f"{server.base}/rows.txt", {"rows.txt": sha256(TEXT)})
    server.served["/rows.txt"] = TEXT + b"7"
    with pytest.raises(DatasetError, match=r"'rows.txt' of http.* is not the published one.*Nothing was kept"):
        read_files(source, tmp_path)
    assert not list(tmp_path.rglob("*"))
    server.served["/rows.txt"] = TEXT
    for _ in range(2):
        assert read_files(source, tmp_path) == {"rows.txt": TEXT}
    assert server.asked == ["/rows.txt"] * 2


def test_a_wrong_hash_is_refused_and_nothing_is_kept(server, source, tmp_path):
    server.served["/toy.zip"] = zipped({NAME: TEXT + b"7"})
    with pytest.raises(DatasetError, match=r"'part/rows.txt' of http.* is not the published one.*Nothing was kept"):
        read_files(source, tmp_path)
    assert not list(tmp_path.rglob("*"))


def test_a_wrong_hash_on_disk_is_refused(tmp_path, source):
    (tmp_path / "toy/part").mkdir(parents=True)
    (tmp_path / "toy" / NAME).write_bytes(TEXT[:-1])
    with pytest.raises(DatasetError, match=r"rows.txt is not the published one.*Remove it"):
        read_files(source, tmp_path)


@pytest.mark.parametrize(
    ("archive", "message"),
    [
        (zipped({"../part/rows.txt": TEXT}), "points outside its folder"),
        (zipped({"/part/rows.txt": TEXT}), "points outside its folder"),
        (tarred({"a/../../part/rows.txt": TEXT}), "points outside its folder"),
        (zipped({"inner.zip": zipped({"../x": b""})}), "points outside its folder"),
        (zipped({"a\\part": TEXT, NAME: TEXT}), "points outside its folder"),
        (zipped({NAME: b"0" * (_files.MOST_BYTES_OF_A_FILE + 1)}), "has more than"),
        (zipped({"other.txt": TEXT}), "has no file 'part/rows.txt'"),
        (b"<html>moved</html>", "not a readable zip or tar"),
        (zipped({NAME: TEXT})[:60], "not a readable zip or tar"),
        (b"", "not a readable zip or tar"),
        (b"0" * 2**23, "stopped at"),
    ],
    # names of our own: an archive holds the time, so names made from it would differ between runs
    ids=["up", "root", "tar", "inner", "backslash", "large", "other", "page", "cut", "empty", "endless"],
)
def test_hostile_archives_are_refused(server, source, tmp_path, archive, message):
    server.served["/toy.zip"] = archive
    with pytest.raises(DatasetError, match=message):
        read_files(source, tmp_path)
    assert not list(tmp_path.rglob("*"))


def test_links_and_many_members_are_not_followed(server, source, tmp_path, monkeypatch):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        link = tarfile.TarInfo(NAME)
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        archive.addfile(link)
    server.served["/toy.zip"] = file.getvalue()
    with pytest.raises(DatasetError, match="has no file"):
        read_files(source, tmp_path)
    monkeypatch.setattr(_files, "MOST_MEMBERS", 3)
    for archive in (zipped, tarred):
        server.served["/toy.zip"] = archive({f"{n}.txt": b"" for n in range(5)})
        with pytest.raises(DatasetError, match="more than 3 members"):
            read_files(source, tmp_path)


@pytest.mark.parametrize(
    ("address", "reason"), [("http://127.0.0.1:1/toy.zip", "ConnectionError"), ("{base}/gone.zip", "status 404")]
)
def test_a_failed_download_names_the_file_and_the_folder(server, source, tmp_path, address, reason):
    source = replace(source, url=address.format(base=server.base))
    with pytest.raises(DatasetError) as caught:
        read_files(source, tmp_path)
    message = str(caught.value)
    assert f"put {NAME!r} into {tmp_path / 'toy'}" in message
    assert f"{source.url} could not be downloaded ({reason})." in message
    assert "JOINTWISE_DATA" in message


def test_without_pooch_the_message_has_file_folder_and_command(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingDependencyError) as caught:
        read_files(Source("toy", "http://127.0.0.1:1/toy.zip", {NAME: sha256(TEXT)}), tmp_path)
    assert f"put {NAME!r} into {tmp_path / 'toy'}" in str(caught.value)
    assert "pip install 'jointwise[data]'" in str(caught.value)


def test_a_folder_that_cannot_be_written_raises(server, source, tmp_path):
    server.served["/toy.zip"] = zipped({NAME: TEXT})
    (tmp_path / "toy").write_text("a file where a folder is wanted")
    with pytest.raises(DatasetError, match=r"cannot be written.*data_home"):
        read_files(source, tmp_path)
