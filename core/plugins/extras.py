"""Extras of core: finds the extra that installs a missing distribution.

core names no other distribution in its code. Its own metadata does: an extra has the name of a backend, of a
cache, of a repository agent or of the scheme of a URL, and requires the distribution that brings it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import metadata

from core.plugins.installed import hidden

_REQUIREMENT = re.compile(r"""([\w-]+).*\bextra == ["']([\w-]+)["']""")


@cache
def extras() -> Mapping[str, list[str]]:
    """Return extra of core → names of the distributions that it requires; empty if core is not installed."""
    try:
        requirements = metadata.requires("core") or []
    except metadata.PackageNotFoundError:
        return {}
    found: dict[str, list[str]] = {}
    for requirement in requirements:
        if match := _REQUIREMENT.match(requirement):
            found.setdefault(match[2], []).append(match[1])
    return found


def flag_hint(name: str) -> str:
    """Return the end of an error text for the unknown flag of an extra that is not installed; "" for others.

    An extra "x-y" has the flags x-y-… and allow-x-y.
    """
    flag = f"{name.removeprefix('allow-')}-"
    found = [
        extra
        for extra, needs in extras().items()
        if flag.startswith(f"{extra}-") and not all(map(is_installed, needs))
    ]
    return install_hint(max(found, key=len, default=""))


def is_installed(distribution: str) -> bool:
    """Return whether a distribution is there, and CORE_BLOCK does not hide it."""
    try:
        metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return False
    return distribution not in hidden()


def install_hint(name: str) -> str:
    """Return the end of an error text: how to install the extra `name`; "" if core has no such extra.

    No index has the distributions of this project: `make wheels` makes the folder.
    """
    return f"; try: pip install --find-links wheels 'core[{name}]'" if name in extras() else ""
