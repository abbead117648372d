"""Formats: map the files of a version directory to backends and to Triton's platform words.

core.plugins.formats reads the formats that installed distributions declare. This module searches them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from core.errors import invalid

TENSORRT_PLAN = "tensorrt_plan"  # a platform; some fields of a configuration are valid only with it


@dataclass(frozen=True)
class Format:
    """A file name that identifies a backend.

    file            default_model_filename of such a model
    backend         name of the backend
    platform        Triton's legacy platform word for it, "" if there is none
    words           further platform words that mean the same
    may_be_file     the model may be a file of that name
    may_be_folder   the model may be a folder of that name
    order           position in the search of a version directory; math.inf: after all formats of Triton
    trust           whether the file can hold code that runs when it is read
    must_exist      a backend's name alone does not mean this format: the file must be there, or be named
    """

    file: str
    backend: str
    platform: str = ""
    words: tuple[str, ...] = ()
    may_be_file: bool = True
    may_be_folder: bool = False
    order: float = math.inf
    trust: bool = False
    must_exist: bool = False

    def is_in(self, entries: Collection[str]) -> bool:
        return (self.may_be_file and self.file in entries) or (
            self.may_be_folder and f"{self.file}/" in entries
        )

    def is_named_by(self, platform: str, file: str) -> bool:
        return file == self.file or (platform != "" and platform in (self.platform, *self.words))


class Formats:
    """The known formats, in the order in which a version directory is searched.

    advice   (names of files or platforms) → the end of an error text that names the package to install;
             "" if there is none
    """

    def __init__(
        self, formats: Iterable[Format], advice: Callable[[Iterable[str]], str] = lambda names: ""
    ):
        self._formats = sorted(formats, key=lambda each: (each.order, each.file, each.backend))
        self.advice = advice

    def __iter__(self) -> Iterator[Format]:
        return iter(self._formats)

    def words_of(self, backend: str) -> list[str]:
        """Return the platform words that are valid with a backend; an empty list if every word is."""
        found = (each for each in self if each.backend == backend and each.platform)
        return list(dict.fromkeys(word for each in found for word in (each.platform, *each.words)))

    def of_backend(
        self, backend: str, platform: str, file: str, entries: Collection[str]
    ) -> Format | None:
        """Return the format for a configured `backend`; None if it has none, or with must_exist none fits."""
        known = [each for each in self if each.backend == backend]
        present = [each for each in known if each.is_in(entries)]
        if any(each.must_exist for each in known):
            named = [each for each in known if each.is_named_by(platform, file)]
            return _first(named if platform or file else present)
        # A .pt2 file may hold TorchScript: only the platform distinguishes the two.
        named = [each for each in known if each.is_named_by(platform, "")]
        ordered = [each for each in known if each.order < math.inf]
        return _first([*named, *ordered, *present, *known])

    def named_by(self, platform: str, file: str) -> Format | None:
        """Return the format of a model whose configuration names a platform or a file; None if unknown."""
        return _first(each for each in self if each.is_named_by(platform, file))

    def found_in(self, entries: Collection[str], only_ordered: bool = False) -> Format | None:
        """Return the format that the names in a version directory identify; None if there is none.

        only_ordered   search only for formats that have an order: those of Triton

        Raises CoreError(INVALID) if files of several backends have the same position in the search.
        """
        found = [each for each in self if each.is_in(entries)]
        best = [each for each in found if each.order == found[0].order]
        if best and best[0].order == math.inf and only_ordered:
            return None
        if len({each.backend for each in best}) > 1:
            names = ", ".join(f"{each.file} ('{each.backend}')" for each in best)
            raise invalid(
                f"the files of the model are for several backends of the same precedence: {names}; name "
                "one with 'backend' in config.pbtxt"
            )
        if best and best[0].order == math.inf:  # the backend may have a default file
            return self.of_backend(best[0].backend, "", "", entries)
        return _first(best)


def _first(formats: Iterable[Format]) -> Format | None:
    return next(iter(formats), None)
