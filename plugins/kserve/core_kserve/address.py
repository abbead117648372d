"""Address: what a kserve:/// URL says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from core.errors import CoreError, invalid
from core.repository import is_folder_name

_EXPECTED = "expected kserve:///mnt/models?name=NAME"
_TRUE = {"true": True, "false": False}


@dataclass(frozen=True)
class Address:
    """The folder that KServe mounts, and how to read it.

    url     as the user wrote it
    folder  the mount
    name    of its model, if the mount is no repository; "" if each of its folders is a model
    trust   whether files that can hold code, such as pickles, are read
    """

    url: str
    folder: Path
    name: str = ""
    trust: bool = False

    @classmethod
    def of(cls, url: str) -> Address:
        """Return the address of a URL. Raises CoreError(INVALID), which names the wrong part."""
        parts = urlsplit(url)
        if parts.netloc or not parts.path.startswith("/"):
            raise _wrong(url, f"found '{parts.netloc or parts.path}' in place of an absolute path")
        given = dict(parse_qsl(parts.query, keep_blank_values=True))
        if unknown := sorted(given.keys() - {"name", "trust"}):
            raise _wrong(url, f"found the parameter '{unknown[0]}', known are name and trust")
        name, trust = given.get("name", ""), given.get("trust", "false")
        if "name" in given and not is_folder_name(name):
            raise _wrong(url, f"found the name '{name}', which cannot be that of a folder")
        if trust not in _TRUE:
            raise _wrong(url, f"found trust={trust}, which must be true or false")
        return cls(url, Path(unquote(parts.path)), name, _TRUE[trust])


def _wrong(url: str, found: str) -> CoreError:
    return invalid(f"model repository '{url}': {found}; {_EXPECTED}")
