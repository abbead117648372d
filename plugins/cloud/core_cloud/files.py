"""RemoteFile, Tree: the objects of a listing, and the names that are valid paths.

listing of fsspec ─► [tree_of] ─► relative path → RemoteFile, and folders.  Pure functions.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from core.repository import version_number

_LONGEST = 255  # bytes of a file name on most file systems
_TIMES = ("LastModified", "last_modified", "updated", "mtime", "modified", "created")
# Depend on the content only: equal after another upload of the same content.
_OF_CONTENT = ("ETag", "md5Hash", "crc32c")
# Change with every upload.
_OF_UPLOAD = ("generation", "etag", "version_id")
_TAGS = (*_OF_CONTENT, *_OF_UPLOAD)


@dataclass(frozen=True)
class RemoteFile:
    """One object of a store, as a listing describes it.

    key       name in the file system
    size      in bytes
    stamp     text that changes with every upload
    content   id of the content: different contents have different ids; equal contents have equal ids if the
              store reports a digest
    md5       MD5 of the content in hexadecimal; "" if the store reports none
    crc32c    CRC32C of the content in base64; "" if the store reports none
    sure      True if `md5` is surely the MD5: an ETag of S3 is not, for some kinds of encryption
    marks     tags of the object, which `changed` compares with those of a later entry
    """

    key: str
    size: int
    stamp: str
    content: str
    md5: str = ""
    crc32c: str = ""
    sure: bool = True
    marks: tuple[tuple[str, str], ...] = ()

    def changed(self, entry: Mapping[str, Any]) -> bool:
        """Return whether a tag has another value in the object's current entry; absent tags do not count."""
        now = dict(_marks(entry))
        return any(now.get(name, text) != text for name, text in self.marks)


@dataclass(frozen=True)
class Tree:
    """All objects below a folder.

    files     path below the folder, with "/" → file
    folders   paths below the folder, each with "/" at the end: those with content, and those with a marker
    odd       names of objects that were skipped, as they are no valid paths, or a folder has the same path
    """

    files: Mapping[str, RemoteFile]
    folders: frozenset[str]
    odd: tuple[str, ...] = ()

    def by_name(self) -> dict[str, Tree]:
        """Return name → Tree for each folder directly in this one."""
        files: dict[str, dict[str, RemoteFile]] = {}
        folders: dict[str, set[str]] = {}
        for folder in self.folders:
            name, _, rest = folder.partition("/")
            folders.setdefault(name, set()).update([rest] if rest else [])
        for path, file in self.files.items():
            name, slash, rest = path.partition("/")
            if slash:
                files.setdefault(name, {})[rest] = file
        return {
            name: Tree(files.get(name, {}), frozenset(found)) for name, found in folders.items()
        }

    def listing(self) -> dict[str, str]:
        """Return path → stamp of each file and folder (""), as core.repository.Listing describes it.

        What is in a folder `__pycache__` is left out.
        """
        found = {folder: "" for folder in self.folders}
        found |= {path: file.stamp for path, file in self.files.items()}
        return {
            path: stamp for path, stamp in found.items() if "__pycache__" not in path.split("/")
        }


def tree_of(entries: Mapping[str, Mapping[str, Any]], root: str) -> Tree:
    """Return the tree of what a listing has below `root`.

    entries   name of an object → its entry in fsspec
    root      the listed folder; "" for all names
    Raises ValueError if the store reports no size, or neither time nor tag, of an object.
    """
    files: dict[str, RemoteFile] = {}
    folders: set[str] = set()
    odd: list[str] = []
    head = root.strip("/") + "/" if root.strip("/") else ""
    for key, entry in entries.items():
        name = key.lstrip("/")
        if not name.startswith(head):
            continue
        path = name.removeprefix(head)
        is_folder = path.endswith("/") or entry.get("type") == "directory"
        path = path.removesuffix("/")
        if not path:
            continue
        if not is_path(path):
            odd.append(name)
            continue
        if is_folder or _marks_a_version(path, entry):
            folders.add(path + "/")
        else:
            files[path] = file_of(key, entry)
    _add_parents(folders, [*files, *folders])
    for path in [each for each in files if f"{each}/" in folders]:
        if files.pop(path).size:  # an empty object is only a marker of the folder
            odd.append(head + path)
    return Tree(files, frozenset(folders), tuple(odd))


def is_path(path: str) -> bool:
    """Return whether all parts of a relative path are valid file names, so that it stays in its folder."""
    return all(_is_name(part) for part in path.split("/"))


def _is_name(part: str) -> bool:
    return (
        part not in ("", ".", "..")
        and not any(character in "\0\\" or "\ud800" <= character <= "\udfff" for character in part)
        and not any(ord(character) < 32 or ord(character) == 127 for character in part)
        and len(part.encode(errors="replace")) <= _LONGEST
    )


def _marks_a_version(path: str, entry: Mapping[str, Any]) -> bool:
    """Return whether an object is empty and has a number as its name: it marks an empty version folder.

    Ensembles have such folders. Azure's listing removes the slash at the end of a marker's name.
    """
    return not entry.get("size") and version_number(path.rpartition("/")[2]) is not None


def _add_parents(folders: set[str], paths: Iterable[str]) -> None:
    for path in paths:
        parent = path.rstrip("/").rpartition("/")[0]
        while parent and f"{parent}/" not in folders:
            folders.add(f"{parent}/")
            parent = parent.rpartition("/")[0]


def file_of(key: str, entry: Mapping[str, Any]) -> RemoteFile:
    """Return the RemoteFile of an entry. Raises ValueError if it has no size, or neither time nor tag."""
    size = entry.get("size")
    if not isinstance(size, int):
        raise ValueError(f"the store does not say how large '{key}' is")
    time = _first(entry, _TIMES, _time)
    upload = _first(entry, _OF_UPLOAD, str)
    content = _first(entry, _OF_CONTENT, str)
    md5, sure = _md5(entry)
    if not (time or upload or content):
        raise ValueError(f"the store says nothing of '{key}' by which a change could be seen")
    return RemoteFile(
        key=key,
        size=size,
        stamp=f"{content}{upload}{time} {size}",
        content=f"{md5 or content or upload or time} {size}",
        md5=md5,
        crc32c=str(entry.get("crc32c") or ""),
        sure=sure,
        marks=_marks(entry),
    )


def _marks(entry: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return name and value of each tag in an entry: digests, and what changes with an upload.

    Times are no tags: their form differs between a listing and a single object.
    """
    return tuple((name, str(entry[name]).strip('"')) for name in _TAGS if entry.get(name))


def _first(entry: Mapping[str, Any], names: Iterable[str], as_text: Callable[[Any], str]) -> str:
    found = (entry.get(name) for name in names)
    return next((as_text(value) for value in found if value), "")


def _time(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _md5(entry: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the MD5 of an object, in hexadecimal, and whether it surely is that; ("", False) if unknown.

    An ETag that looks like an MD5 is returned, but is not sure.
    """
    if google := entry.get("md5Hash"):
        return base64.b64decode(google).hex(), True
    settings = entry.get("content_settings")
    member = settings.get("content_md5") if isinstance(settings, Mapping) else None
    if azure := getattr(settings, "content_md5", member):
        return bytes(azure).hex(), True
    tag = str(entry.get("ETag") or "").strip('"').lower()
    if len(tag) == 32 and all(digit in "0123456789abcdef" for digit in tag):
        return tag, False
    return "", False
