"""The paths that the pattern of a route stands for, as OpenAPI writes them.

"/v2/models/(?P<model>[^/]+)(?:/ready)?" ─► "/v2/models/{model}", "/v2/models/{model}/ready"
"""

from __future__ import annotations

import re

# What the patterns of the router are made of, beside plain text.
_OPTIONAL = re.compile(r"\(\?:((?:[^()]|\(\?P<\w+>[^()]*\))*)\)\?")
_NAMED = re.compile(r"\(\?P<(\w+)>([^()]*)\)")


def templates(pattern: str) -> list[str]:
    """Return the paths of a pattern, each named part written as {name}.

    Each optional part doubles the paths: first come those without it. A named part that permits a single
    word is that word.
    """
    if (found := _OPTIONAL.search(pattern)) is not None:
        before, after = pattern[: found.start()], pattern[found.end() :]
        return templates(before + after) + templates(before + found[1] + after)
    for found in _NAMED.finditer(pattern):
        before, after = pattern[: found.start()], pattern[found.end() :]
        if re.fullmatch(r"\w+", found[2]):  # a word, no variable
            return templates(before + found[2] + after)
    return [re.sub(r"\\(.)", r"\1", _NAMED.sub(r"{\1}", pattern))]


def forms(pattern: str) -> dict[str, str]:
    """Return name → regular expression of the named parts of a pattern."""
    return {found[1]: found[2] for found in _NAMED.finditer(pattern)}
