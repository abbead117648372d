"""Unpack the archive of an environment into a folder: an archive of conda-pack, any tar, any zip."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import importlib
import lzma
import stat
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from backend_python.environments import Unusable
from backend_python.environments.unpacking import LONGEST, Unpacking

_ZIP = b"PK\x03\x04"
_ZSTANDARD = b"\x28\xb5\x2f\xfd"
# First bytes of a file → the function that opens its uncompressed content.
_OPENERS: dict[bytes, Callable[..., Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
    _ZSTANDARD: lambda path, mode: _zstandard().open(path, mode),
}
# Entries that only describe the next entry. tarfile reads them whole, and few packed bytes may be gigabytes.
_DESCRIBING = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_MOST_DESCRIBED = 1 << 20  # bytes
_BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    OSError,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    NotImplementedError,  # a zip with an unknown compression
    RuntimeError,  # a zip with a password
    ValueError,  # an invalid time
    OverflowError,
)


class _Entry(tarfile.TarInfo):
    """A tar entry that checks the size of a describing entry before tarfile reads its content."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Any:
        found = super().frombuf(buf, encoding, errors)
        if found.type in _DESCRIBING and not 0 <= found.size <= _MOST_DESCRIBED:
            raise Unusable(
                f"entry '{found.name[:80]}' describes another with {found.size} bytes; it may have "
                f"{_MOST_DESCRIBED}"
            )
        return found


def is_archive(file: Path) -> bool:
    """Return whether the file is an archive that `unpack` knows. Raise OSError if it cannot be read."""
    head = _head(file)
    # A tar is recognised by its first entry. A zip's magic may also end any file, so only the head counts.
    if head.startswith((_ZIP, _ZSTANDARD)):
        return True
    try:
        return tarfile.is_tarfile(file)
    except (EOFError, zlib.error, lzma.LZMAError):
        return True  # cut off in its first entry: `unpack` reports it


def unpack(archive: Path, folder: Path, most_bytes: int) -> None:
    """Unpack `archive` into `folder`, which must not exist. May take minutes.

    Files keep their times (Python checks bytecode by them) and whether they are executable, nothing else.
    Raises Unusable if the file is no archive or has forbidden entries; the folder may be incomplete then.
    """
    folder.mkdir()
    unpacking = Unpacking(str(folder), most_bytes)
    try:
        if _head(archive).startswith(_ZIP):
            with zipfile.ZipFile(archive) as file:
                _take_zip(file, unpacking)
        else:
            with _content(archive) as content:
                with tarfile.open(
                    fileobj=content, mode="r|", bufsize=1 << 16, tarinfo=_Entry
                ) as tar:
                    _take_tar(tar, unpacking)
                _to_its_end(content, most_bytes)
        unpacking.finish()
    except _BROKEN as error:
        raise Unusable(f"cannot be unpacked: {type(error).__name__}: {error}") from None


def _head(file: Path) -> bytes:
    with file.open("rb") as content:
        return content.read(8)


def _content(archive: Path) -> contextlib.AbstractContextManager[Any]:
    """Open a tar and return its uncompressed content. Reading it to the end checks the checksum."""
    head = _head(archive)
    for magic, opener in _OPENERS.items():
        if head.startswith(magic):
            opened: contextlib.AbstractContextManager[Any] = opener(archive, "rb")
            return opened
    return archive.open("rb")


def _zstandard() -> Any:
    """Return a Zstandard module with `open`: Python's own from 3.14 on, else an installed one."""
    for name in ("compression.zstd", "backports.zstd", "zstandard"):
        with contextlib.suppress(ImportError):
            return importlib.import_module(name)
    raise Unusable(
        "is compressed with Zstandard, which this Python cannot read; try: pip install zstandard, "
        "or pack it as .tar.gz"
    )


def _to_its_end(content: Any, most_bytes: int) -> None:
    """Read up to `most_bytes` more to the end of the content, where its checksum is checked.

    tarfile stops before the end.
    """
    while most_bytes > 0 and (rest := content.read(1 << 16)):
        most_bytes -= len(rest)


def _take_tar(tar: tarfile.TarFile, unpacking: Unpacking) -> None:
    while (entry := tar.next()) is not None:
        tar.members.clear()  # type: ignore[attr-defined]  # it would keep every entry
        name = entry.name
        if entry.isdir():
            unpacking.folder(name)
        elif entry.isreg():
            content = tar.extractfile(entry)
            assert content is not None  # it is a regular file
            unpacking.file(name, content, entry.size, bool(entry.mode & 0o111), entry.mtime)
        elif entry.issym():
            unpacking.link(name, entry.linkname)
        elif entry.islnk():
            unpacking.hard_link(name, entry.linkname)
        else:
            raise Unusable(f"entry '{name}' is neither a file nor a folder nor a link")


def _take_zip(file: zipfile.ZipFile, unpacking: Unpacking) -> None:
    for entry in file.infolist():
        name, mode = entry.filename, entry.external_attr >> 16
        if stat.S_ISLNK(mode):
            with file.open(entry) as content:
                unpacking.link(name, content.read(LONGEST + 1).decode("utf-8", "surrogateescape"))
        elif entry.is_dir():
            unpacking.folder(name)
        elif mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            raise Unusable(f"entry '{name}' is neither a file nor a folder nor a link")
        else:
            # Local time, in steps of two seconds: Python compiles bytecode of the archive again.
            changed_s = time.mktime((*entry.date_time, 0, 0, -1))
            with file.open(entry) as content:
                unpacking.file(name, content, entry.file_size, bool(mode & 0o111), changed_s)
