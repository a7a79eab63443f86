"""Writing files: complete or not at all, through links, with the mode of the old file; and streams."""

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import jointwise
from jointwise._files import is_stream, replacing

ROOT = os.getuid() == 0 if hasattr(os, "getuid") else False


def put(path, data=b"new"):
    with replacing(path) as file:
        file.write(data)


def only(folder, *names):
    assert sorted(p.name for p in folder.iterdir()) == sorted(names)


def test_a_new_file_has_the_mode_of_any_other(tmp_path):
    before = os.umask(0o027)
    try:
        put(tmp_path / "a")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640
    only(tmp_path, "a")


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o755, 0o400])
def test_a_file_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(mode)
    put(path)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_bytes() == b"new"


@pytest.mark.skipif(not ROOT, reason="only root may give files away")
def test_a_file_keeps_its_owner(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    os.chown(path, 1234, 2345)
    put(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 2345)


def test_nobody_reads_meanwhile_what_they_may_not_read_at_the_end(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o600)
    with replacing(path) as file:
        file.write(b"secret")
        (beside,) = (p for p in tmp_path.iterdir() if p != path)
        assert stat.S_IMODE(beside.stat().st_mode) == 0o600


@pytest.mark.parametrize("there", [True, False], ids=["target", "dangling"])
def test_a_link_stays_and_its_target_is_replaced(tmp_path, there):
    (tmp_path / "far").mkdir()
    target = tmp_path / "far" / "a"
    if there:
        target.write_bytes(b"old")
    (tmp_path / "link").symlink_to("far/a")
    (tmp_path / "link of link").symlink_to("link")
    put(tmp_path / "link of link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "link of link").is_symlink()
    assert target.read_bytes() == b"new"
    only(target.parent, "a")


def test_links_in_a_circle_are_refused(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match=r"symbolic links.*/a'") as caught:
        put(tmp_path / "a")
    assert caught.value.errno == errno.ELOOP
    assert (tmp_path / "a").is_symlink()


def test_failures_name_the_file_asked_for_and_leave_nothing(tmp_path):
    for path, kind in ((tmp_path, IsADirectoryError), (tmp_path / "nowhere" / "a", FileNotFoundError)):
        with pytest.raises(kind) as caught:
            put(path)
        assert caught.value.filename == str(path)
    with pytest.raises(TypeError), replacing(tmp_path / "a") as file:
        file.writelines([b"half", "no bytes"])
    only(tmp_path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device")
@pytest.mark.parametrize("size", [1, 10_000_000])
def test_a_full_device_is_named_and_stays_a_device(tmp_path, size):
    full = tmp_path / "full"
    full.symlink_to("/dev/full")  # a failed write must not replace the device itself
    with pytest.raises(OSError, match=r"No space left.*/full'"):
        put(full, b"x" * size)
    assert stat.S_ISCHR(full.stat().st_mode)
    only(tmp_path, "full")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_pipe_is_written_to_and_stays_one(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    found = []
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()))
    reader.start()
    put(path, b"x" * 300_000)
    reader.join(timeout=30)
    assert found == [b"x" * 300_000]
    assert path.is_fifo()
    only(tmp_path, "pipe")


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no such folder")
def test_an_open_file_goes_on_where_it_is(tmp_path):
    with (tmp_path / "a").open("wb", buffering=0) as file:
        file.write(b"head ")
        assert is_stream(f"/dev/fd/{file.fileno()}")
        put(f"/dev/fd/{file.fileno()}")
        (tmp_path / "link").symlink_to(f"/proc/self/fd/{file.fileno()}")
        put(tmp_path / "link", b" tail")
    assert (tmp_path / "a").read_bytes() == b"head new tail"
    with pytest.raises(OSError, match="Bad file descriptor: '/dev/fd/987'"):
        put("/dev/fd/987")


def test_a_kill_at_any_moment_leaves_the_old_or_the_new_file(tmp_path):
    path = tmp_path / "a"
    contents = [bytes([65 + i]) * 3_000_000 for i in range(2)]
    path.write_bytes(contents[0])
    script = (
        "import sys; from jointwise._files import replacing\n"
        "print('on', flush=True)\n"
        "for i in range(100_000):\n"
        "    with replacing(sys.argv[1]) as file: file.write(bytes([65 + i % 2]) * 3_000_000)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(jointwise.__file__).parents[1])}
    for wait in (0.0, 0.013, 0.05, 0.11):
        process = subprocess.Popen([sys.executable, "-c", script, path], env=environment, stdout=subprocess.PIPE)
        process.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(wait)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert path.read_bytes() in contents
