"""Files of published data sets: found on disk or downloaded from their official address, and always checked.

A file is used only if its sha256 is the published one, and only the wanted files of an archive are written.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import IO, Any

from jointwise._files import replacing
from jointwise.exceptions import DatasetError, MissingDependencyError

Home = str | os.PathLike[str] | None
# Environment variable with the data folder, and the folder without it.
VARIABLE = "JOINTWISE_DATA"
HOME = "~/jointwise_data"
# Most bytes read of one file; the largest file has 3,974,305.
MOST_BYTES_OF_A_FILE = 2**22
# Most members of an archive; the largest has 821.
MOST_MEMBERS = 10_000


@dataclass(frozen=True)
class Source:
    """Where the files of one data set come from, and their hashes."""

    folder: str  # subfolder of the data folder
    url: str  # official address of the archive (zip or tar) with the files, or of the only file itself
    hashes: Mapping[str, str]  # sha256 of each file by name: its path in `folder`, the end of its path in the archive
    most_bytes: int = 2**22  # to download


def data_folder(data_home: Home = None) -> Path:
    """Return the data folder: the argument, else the variable JOINTWISE_DATA, else ``~/jointwise_data``."""
    return Path(data_home or os.environ.get(VARIABLE) or HOME).expanduser()


def read_files(source: Source, data_home: Home = None) -> dict[str, bytes]:
    """Return the contents of the files by name; download them to disk first if one is missing."""
    folder = data_folder(data_home) / source.folder
    missing = [name for name in source.hashes if not (folder / name).is_file()]
    if missing:
        _download(source, folder, missing[0])
    return {name: _checked(folder / name, sha256) for name, sha256 in source.hashes.items()}


def optional(package: str, purpose: str, extra: str) -> Any:
    """Import an optional package, or say what it is for and how to install it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingDependencyError(f"{purpose} Install it with: pip install 'jointwise[{extra}]'") from error


def _checked(path: Path, sha256: str) -> bytes:
    try:
        with path.open("rb") as file:
            contents = file.read(MOST_BYTES_OF_A_FILE + 1)
    except OSError as error:
        raise DatasetError(f"The file {path} cannot be read: {error.strerror}.") from error
    if hashlib.sha256(contents).hexdigest() != sha256:
        raise DatasetError(
            f"The file {path} is not the published one: its sha256 is not {sha256}. Remove it to download it again."
        )
    return contents


# ---- download ------------------------------------------------------------------------------------------------------


def _download(source: Source, folder: Path, wanted: str) -> None:
    """Download the archive and write its files into ``folder``; ``wanted`` is one of the missing files."""
    by_hand = f"or get {source.url} yourself and put {wanted!r} into {folder}."
    pooch = optional(
        "pooch", f"The file {wanted!r} is not in {folder}, and downloading needs the package pooch, {by_hand}", "data"
    )
    archive = _Bounded(source.most_bytes)
    try:
        pooch.HTTPDownloader()(source.url, archive, None)
    except DatasetError:
        raise
    except OSError as error:  # includes every connection error
        response = getattr(error, "response", None)  # only if the server has answered
        reason = type(error).__name__ if response is None else f"status {response.status_code}"
        raise DatasetError(
            f"The file {wanted!r} is not in {folder}, and {source.url} could not be downloaded ({reason}). Connect to "
            f"the network, {by_hand} The variable {VARIABLE} sets another data folder."
        ) from error
    found = _members(source, archive)
    for name, sha256 in source.hashes.items():
        if name not in found:
            raise DatasetError(f"The archive {source.url} has no file {name!r}, so it is not the published one.")
        if hashlib.sha256(found[name]).hexdigest() != sha256:
            raise DatasetError(
                f"The file {name!r} of {source.url} is not the published one: its sha256 is not {sha256}. Nothing was "
                "kept."
            )
    for name, contents in found.items():
        _write(folder / name, contents)


class _Bounded(io.BytesIO):
    """A file in memory with a largest size."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__()
        self.most_bytes = most_bytes

    def write(self, data: Any, /) -> int:
        if self.tell() + len(data) > self.most_bytes:
            raise DatasetError(f"A download was stopped at {self.most_bytes} bytes; the published file is smaller.")
        return super().write(data)


def _members(source: Source, archive: IO[bytes]) -> dict[str, bytes]:
    """Return the contents of the members whose path ends with a wanted name, also in an archive within the archive.

    If the address ends with a wanted name, the download is that file itself.
    """
    last = source.url.rpartition("/")[2]
    if last in source.hashes:
        archive.seek(0)
        return {last: archive.read()}
    try:
        return dict(_walk(archive, source.hashes, nested=False))
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise DatasetError(f"The download of {source.url} is not a readable zip or tar archive: {error}") from error


def _walk(archive: IO[bytes], wanted: Collection[str], *, nested: bool) -> Iterator[tuple[str, bytes]]:
    """Yield name and contents of the wanted files of an archive, and of zip archives in it, one level deep."""
    for path, open_member in _entries(archive):
        parts = PurePosixPath(path).parts
        if "\\" in path or path.startswith("/") or ".." in parts:
            raise DatasetError(f"An archive was refused: its member {path!r} points outside its folder.")
        endings = ("/".join(parts[start:]) for start in range(len(parts)))
        name = next((name for name in endings if name in wanted), None)
        if name is not None:
            yield name, _contents(path, open_member)
        elif path.endswith(".zip") and not nested:
            yield from _walk(io.BytesIO(_contents(path, open_member)), wanted, nested=True)


def _contents(path: str, open_member: Callable[[], IO[bytes]]) -> bytes:
    with open_member() as stream:
        contents = stream.read(MOST_BYTES_OF_A_FILE + 1)
    if len(contents) > MOST_BYTES_OF_A_FILE:
        raise DatasetError(f"An archive was refused: its member {path!r} has more than {MOST_BYTES_OF_A_FILE} bytes.")
    return contents


def _entries(archive: IO[bytes]) -> Iterator[tuple[str, Callable[[], IO[bytes]]]]:
    """Yield the path of every regular file of a zip or tar archive, and a function that opens it."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            entries = [entry for entry in opened.infolist() if not entry.is_dir()]
            _check_number(len(entries))
            for entry in entries:
                yield entry.filename, partial(opened.open, entry)
        return
    archive.seek(0)
    with tarfile.open(fileobj=archive, mode="r:") as tar:
        for number, member in enumerate(tar):
            _check_number(number)
            if member.isreg():
                yield member.name, partial(tar.extractfile, member)  # type: ignore[misc]  # a regular file has contents


def _check_number(n_members: int) -> None:
    if n_members > MOST_MEMBERS:
        raise DatasetError(f"An archive was refused: it has more than {MOST_MEMBERS} members.")


def _write(path: Path, contents: bytes) -> None:
    """Write a file completely or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(contents)
    except OSError as error:
        raise DatasetError(
            f"The file {path} cannot be written: {error.strerror}. Give another folder by `data_home` or by the "
            f"variable {VARIABLE}."
        ) from error
