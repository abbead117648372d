"""Wheels of libraries that a machine lacks: requirements of wheels, less what is there.

A walk: the requirements of some wheels that no installed package satisfies are downloaded, then what these
require, until nothing is missing.
"""

from __future__ import annotations

import email.parser
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# Gigabytes, or bound to a driver: a machine with a GPU brings its own, or its tests are skipped.
NEVER = re.compile(
    r"torch(vision|audio)?|triton|(cuda|cupy|jax|nvidia(?!-ml-py)|onnxruntime-gpu|tensorrt).*"
)


@dataclass
class Needs:
    """Result of a walk.

    files     wheels that were downloaded
    absent    requirement → who requires it: neither there nor carried
    """

    files: list[Path] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)


def installed(text: str) -> dict[str, str]:
    """Return name → version of a list: `NAME VERSION`, `NAME==VERSION` or `NAME` in each line.

    The version is "" if the list has none; then any requirement counts as satisfied.
    """
    found = {}
    for line in text.splitlines():
        words = line.partition("#")[0].replace("==", " ").split()
        if words and set(line.strip()) != {"-", " "} and words[0] != "Package":
            found[str(canonicalize_name(words[0]))] = words[1] if len(words) > 1 else ""
    return found


def requirements(wheel: Path) -> list[str]:
    """Return the lines Requires-Dist of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        message = email.parser.Parser().parsestr(archive.read(name).decode())
    return message.get_all("Requires-Dist") or []


def name_of(wheel: Path) -> str:
    """Return the name of a wheel's distribution."""
    return str(canonicalize_name(wheel.name.split("-")[0]))


def walk(
    wanted: Iterable[tuple[str, str]],
    has: Mapping[str, str],
    own: Iterable[str],
    download: Callable[[str], Path],
) -> Needs:
    """Return the wheels that have to be carried.

    wanted     pairs of a requirement and who requires it
    has        name → version of what is there
    own        names of what the kit has anyway
    download   requirement → its wheel
    """
    found, known = Needs(), {canonicalize_name(each) for each in own}
    waiting = list(wanted)
    while waiting:
        text, asker = waiting.pop(0)
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        if name in known or not applies(requirement) or satisfied(requirement, has):
            continue
        bare = requirement.name + str(requirement.specifier)
        if NEVER.fullmatch(name):
            found.absent[bare] = asker
            continue
        known.add(name)
        wheel = download(bare)
        found.files.append(wheel)
        for each in requirements(wheel):
            waiting.append((chosen(each, requirement.extras), name))
    return found


def applies(requirement: Requirement) -> bool:
    """Return whether the marker of a requirement holds on this machine; extras were chosen before."""
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


def chosen(text: str, extras: Iterable[str]) -> str:
    """Return a requirement without its marker if one of the extras asks for it; else as it is."""
    requirement = Requirement(text)
    marker = requirement.marker
    if marker and any(marker.evaluate({"extra": each}) for each in extras):
        requirement.marker = None
    return str(requirement)


def satisfied(requirement: Requirement, has: Mapping[str, str]) -> bool:
    """Return whether what is there fits a requirement. A version that is not known fits."""
    version = has.get(str(canonicalize_name(requirement.name)))
    if version is None:
        return False
    return not version or requirement.specifier.contains(version, prereleases=True)


def downloaded(requirement: str, folder: Path) -> Path:
    """Download the wheel of a requirement for this Python, without what it requires, and return it."""
    before = set(folder.glob("*.whl"))
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary=:all:", "--dest", str(folder), requirement]
    subprocess.run(command, check=True)
    new = set(folder.glob("*.whl")) - before
    if len(new) != 1:
        raise SystemExit(f"{requirement}: pip brought {len(new)} wheels; expected 1")
    return new.pop()
