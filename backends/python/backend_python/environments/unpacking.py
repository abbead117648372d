"""Unpack an archive into a folder, without trust in the paths of its entries.

Files and folders are made first, then links, so that no file is written through a link. A link to a path
outside of the folder raises Unusable.
"""

from __future__ import annotations

import os
import shutil
from typing import IO

from backend_python.environments import Unusable

_MOST_ENTRIES = 2_000_000
# Limit in bytes of a name. The system does not resolve longer paths, so they could not be checked.
LONGEST = 1024


class Unpacking:
    """Fills a folder with the entries of an archive. Raises Unusable for a forbidden name.

    root         the folder; it exists and is empty
    most_bytes   limit of the sum of all file sizes
    """

    def __init__(self, root: str, most_bytes: int):
        self._root = os.path.realpath(root)
        self._most = most_bytes
        self._bytes = 0
        self._entries = 0
        self._links: dict[str, str] = {}  # name → target

    def folder(self, entry: str) -> None:
        if name := self._name(entry):
            self._folder(name)

    def file(self, entry: str, content: IO[bytes], size: int, runs: bool, time_s: float) -> None:
        """Write `content`, of `size` bytes, to a file. Raises Unusable if all files together are too large.

        runs     whether the file is executable
        time_s   time of its last change, seconds since 1970
        """
        name = self._named(entry)
        self._bytes += size
        if self._bytes > self._most:
            raise Unusable(
                f"holds more than {self._most} bytes; "
                "--backend-config=python,environment-max-byte-size=N allows more"
            )
        path = self._new(name)
        with open(path, "xb") as file:
            shutil.copyfileobj(content, file, 1 << 20)
            os.fchmod(file.fileno(), 0o755 if runs else 0o644)
        os.utime(path, (time_s, time_s))

    def link(self, entry: str, target: str) -> None:
        """Record a symbolic link for `finish`. Raises Unusable if the target is absolute or too long."""
        name = self._named(entry)
        if os.path.isabs(target) or "\0" in target or _length(target) > LONGEST:
            raise _leads_out(name, target)
        self._new(name)
        self._links[name] = target

    def hard_link(self, entry: str, to: str) -> None:
        """Add another name for an earlier file or link. Raises Unusable if there is none."""
        name, target = self._named(entry), _checked(to, entry)
        if target in self._links:
            self._new(name)
            self._links[name] = self._links[target]
            return
        found = f"{self._root}/{target}"
        if target == name or not os.path.isfile(found):
            raise Unusable(f"entry '{name}' is a link to '{to}', which is no file before it")
        os.link(found, self._new(name))

    def finish(self) -> None:
        """Make the symbolic links, after the last entry. Raises Unusable if one leads out of the folder."""
        for name, target in self._links.items():
            path = f"{self._root}/{name}"
            if os.path.lexists(path):
                raise Unusable(f"entry '{name}' is a link, and others lie behind it")
            os.symlink(target, path)
        for name, target in self._links.items():  # one link may lead through another
            end = os.path.realpath(f"{self._root}/{name}")
            if end != self._root and not end.startswith(f"{self._root}/"):
                raise _leads_out(name, target)

    def _name(self, entry: str) -> str:
        """Count an entry and return its checked name; "" for the folder itself."""
        self._entries += 1
        if self._entries > _MOST_ENTRIES:
            raise Unusable(f"has more than {_MOST_ENTRIES} entries")
        return _checked(entry, entry)

    def _named(self, entry: str) -> str:
        if name := self._name(entry):
            return name
        raise Unusable(f"entry '{entry}' has no name")

    def _folder(self, name: str) -> None:
        try:
            os.makedirs(f"{self._root}/{name}", 0o755, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise Unusable(f"entry '{name}' is a folder, and another is a file there") from None

    def _new(self, name: str) -> str:
        """Return the path of a new file; remove an earlier file or link of that name."""
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


def _checked(name: str, entry: str) -> str:
    """Return a name relative to the archive's top; "" for the top. Raises Unusable if it leads outside."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\0" in name:
        raise Unusable(f"entry '{entry}' lies outside of it")
    if _length(name) > LONGEST:
        raise Unusable(f"entry '{entry[:80]}…' has a name of more than {LONGEST} bytes")
    return "/".join(parts)


def _length(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _leads_out(name: str, target: str) -> Unusable:
    return Unusable(
        f"entry '{name}' is a link to '{target[:200]}', outside of the archive; "
        "an environment with such links can be used as a folder"
    )
