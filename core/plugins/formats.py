"""Formats that distributions declare: entry points of the group core.formats.

    [project.entry-points."core.formats"]
    "model.mine" = "mine"

The name is a file in a version directory, the value the backend. Triton's name of the format may follow the
backend, then further words in brackets: `mine:mine_plan [file, folder]`.
    file, folder   form of the model; default: file
    a number       position in Triton's search of a version directory; formats without one come last
    trust          to read the file can mean to run code in it, as with pickles
    must_exist     the backend's name alone is not enough: the file is there, or file or platform is named
    other words    synonyms of Triton's name of the format (`mine_plan`)
Nothing is imported.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping

from core.config.formats import Format, Formats
from core.plugins.installed import FORMATS, Plugin, installed
from core.plugins.missing import advice

logger = logging.getLogger("core")

_KINDS = ("file", "folder", "trust", "must_exist")
_VALUE = re.compile(r"([\w-]+)\s*(?::\s*([\w.-]+))?\s*(?:\[([\w\s,.-]*)\])?")


def formats() -> Formats:
    """Return the installed formats. Any thread."""
    global _last
    declared = installed(FORMATS)
    if declared is not _last[0]:
        _last = declared, _read(declared)
    return _last[1]


_last: tuple[Mapping[str, Plugin], Formats] = {}, Formats((), advice)


def _read(declared: Mapping[str, Plugin]) -> Formats:
    found: dict[tuple[str, str], Format] = {}
    for file, plugin in declared.items():
        for entry in plugin.entries:
            if (made := _format(file, entry.value)) is None:
                logger.error(
                    "format '%s' of %s is left out: found '%s', expected the name of a backend, such as "
                    "'mine' or 'mine:mine_plan [folder]'",
                    file,
                    plugin.distribution,
                    entry.value,
                )
            else:
                found.setdefault((file, made.backend), made)
    return Formats(found.values(), advice)


def _format(file: str, value: str) -> Format | None:
    """Return the format that an entry declares; None if it is invalid."""
    if (match := _VALUE.fullmatch(value.strip())) is None:
        return None
    backend, platform, listed = match.groups(default="")
    said = [word for word in re.split(r"[\s,]+", listed) if word]
    places = [int(word) for word in said if word.isascii() and word.isdigit()]
    return Format(
        file,
        backend,
        platform,
        words=tuple(word for word in said if not word.isdigit() and word not in _KINDS),
        may_be_file="file" in said or "folder" not in said,
        may_be_folder="folder" in said,
        order=places[0] if places else math.inf,
        trust="trust" in said,
        must_exist="must_exist" in said,
    )
