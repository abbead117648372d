"""An environment's archive becomes a folder: what conda-pack writes, or any tar.

Nothing in the archive is trusted with where it goes: files and folders are made first, then links, so
that nothing is ever written through a link; and a link that leads out of the folder ends it all.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import shutil
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from backend_python.environments import Unusable

# By the first bytes of a file.
_OPENERS: dict[bytes, Callable[..., Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
}
_MOST_ENTRIES = 2_000_000
_LONGEST = (
    1024  # bytes of a name: a path that the system does not follow is not checked by following it
)


def unpack(archive: Path, folder: Path, most_bytes: int) -> None:
    """Unpack `archive` into `folder`, which must be new. May take minutes.

    Files keep their times (bytecode is found by them) and whether they may be executed, nothing else.
    Unusable for what is no archive or holds what it should not; then the folder may hold a part of it.
    """
    folder.mkdir()
    try:
        with _content(archive) as content:
            with tarfile.open(fileobj=content, mode="r|", bufsize=1 << 16) as tar:
                links = _Unpacking(tar, os.path.realpath(folder), most_bytes).files()
            _to_its_end(content, most_bytes)
    except (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise Unusable(f"cannot be unpacked: {type(error).__name__}: {error}") from None
    _make_links(os.path.realpath(folder), links)


def _to_its_end(content: Any, most_bytes: int) -> None:
    """To the checksum, which is read with the last byte; tarfile stops before."""
    while most_bytes > 0 and (rest := content.read(1 << 16)):
        most_bytes -= len(rest)


def _content(archive: Path) -> contextlib.AbstractContextManager[Any]:
    """The archive's bytes, uncompressed and checked."""
    with archive.open("rb") as file:
        head = file.read(8)
    for magic, opener in _OPENERS.items():
        if head.startswith(magic):
            opened: contextlib.AbstractContextManager[Any] = opener(archive, "rb")
            return opened
    return archive.open("rb")


class _Unpacking:
    """One pass over an archive."""

    def __init__(self, tar: tarfile.TarFile, root: str, most_bytes: int):
        self._tar = tar
        self._root = root
        self._most = most_bytes
        self._bytes = 0
        self._links: dict[str, str] = {}  # name → target

    def files(self) -> dict[str, str]:
        """Make all folders and files. The links that remain to be made."""
        count = 0
        while (entry := self._tar.next()) is not None:
            self._tar.members.clear()  # type: ignore[attr-defined]  # it would keep every entry
            count += 1
            if count > _MOST_ENTRIES:
                raise Unusable(f"has more than {_MOST_ENTRIES} entries")
            self._take(entry)
        return self._links

    def _take(self, entry: tarfile.TarInfo) -> None:
        name = _checked(entry.name, entry.name)
        if not name:
            return  # the folder itself
        if entry.isdir():
            self._folder(name)
        elif entry.isreg():
            self._file(entry, name)
        elif entry.issym():
            self._link(entry, name)
        elif entry.islnk():
            self._hard_link(entry, name)
        else:
            raise Unusable(f"entry '{entry.name}' is neither a file nor a folder nor a link")

    def _folder(self, name: str) -> str:
        path = f"{self._root}/{name}"
        try:
            os.makedirs(path, 0o755, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise Unusable(f"entry '{name}' is a folder, and another is a file there") from None
        return path

    def _new(self, name: str) -> str:
        """The path of a new file; one of that name that came before gives way."""
        parent = os.path.dirname(name)
        if parent:
            self._folder(parent)
        path = f"{self._root}/{name}"
        if os.path.isdir(path):
            raise Unusable(f"entry '{name}' is a file, and another is a folder there")
        if os.path.lexists(path):
            os.unlink(path)
        self._links.pop(name, None)
        return path

    def _file(self, entry: tarfile.TarInfo, name: str) -> None:
        self._bytes += entry.size
        if self._bytes > self._most:
            raise Unusable(
                f"holds more than {self._most} bytes; "
                "--backend-config=python,environment-max-byte-size=N allows more"
            )
        path = self._new(name)
        content = self._tar.extractfile(entry)
        assert content is not None  # it is a regular file
        with open(path, "xb") as file:
            shutil.copyfileobj(content, file, 1 << 20)
            os.fchmod(file.fileno(), 0o755 if entry.mode & 0o111 else 0o644)
        os.utime(path, (entry.mtime, entry.mtime))

    def _link(self, entry: tarfile.TarInfo, name: str) -> None:
        if os.path.isabs(entry.linkname) or len(entry.linkname.encode()) > _LONGEST:
            raise _leads_out(name, entry.linkname)
        self._new(name)
        self._links[name] = entry.linkname

    def _hard_link(self, entry: tarfile.TarInfo, name: str) -> None:
        target = _checked(entry.linkname, name)
        if target in self._links:
            self._new(name)
            self._links[name] = self._links[target]
            return
        found = f"{self._root}/{target}"
        if target == name or not os.path.isfile(found):
            raise Unusable(
                f"entry '{name}' is a link to '{entry.linkname}', which is no file before it"
            )
        os.link(found, self._new(name))


def _make_links(root: str, links: dict[str, str]) -> None:
    for name, target in links.items():
        path = f"{root}/{name}"
        if os.path.lexists(path):
            raise Unusable(f"entry '{name}' is a link, and others lie behind it")
        os.symlink(target, path)
    for name, target in links.items():  # they may lead over each other
        end = os.path.realpath(f"{root}/{name}")
        if end != root and not end.startswith(f"{root}/"):
            raise _leads_out(name, target)


def _checked(name: str, entry: str) -> str:
    """A name in the archive without ".", relative to its top; "" for the top itself."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\0" in name:
        raise Unusable(f"entry '{entry}' lies outside of it")
    if len(name.encode("utf-8", "surrogateescape")) > _LONGEST:
        raise Unusable(f"entry '{entry[:80]}…' has a name of more than {_LONGEST} bytes")
    return "/".join(parts)


def _leads_out(name: str, target: str) -> Unusable:
    return Unusable(
        f"entry '{name}' is a link to '{target[:200]}', outside of the archive; "
        "an environment with such links can be used as a folder"
    )
