"""The paths that a pattern of the HTTP router stands for, as OpenAPI writes them."""

import re

# The parts of the router's patterns, beside plain text.
_OPTIONAL = re.compile(r"\(\?:((?:[^()]|\(\?P<\w+>[^()]*\))*)\)\?")
_NAMED = re.compile(r"\(\?P<(\w+)>([^()]*)\)")


def templates(pattern):
    """Return the paths of a pattern, with {names}."""
    if (found := _OPTIONAL.search(pattern)) is not None:
        before, after = pattern[: found.start()], pattern[found.end() :]
        return templates(before + after) + templates(before + found[1] + after)
    for found in _NAMED.finditer(pattern):
        before, after = pattern[: found.start()], pattern[found.end() :]
        if re.fullmatch(r"[\w|]+", found[2]):  # one of some words
            return [
                path for word in found[2].split("|") for path in templates(before + word + after)
            ]
    return [re.sub(r"\\(.)", r"\1", _NAMED.sub(r"{\1}", pattern))]


def form(pattern, name):
    """Return the regular expression of a named part of a pattern."""
    return next(found[2] for found in _NAMED.finditer(pattern) if found[1] == name)
