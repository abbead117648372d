"""The settings of environments: --backend-config=python,…"""

from __future__ import annotations

from pathlib import Path

from core.errors import invalid

CACHE = "environment-cache-directory"
MOST = "environment-max-byte-size"
INSTALL = "install-requirements"

_WORDS = {"": False, "false": False, "0": False, "true": True, "1": True}


class EnvironmentSettings:
    """The settings of environments. Raises CoreError(INVALID) for an invalid value.

    cache      folder that keeps environments; None: a temporary folder
    most       limit of an archive's unpacked size, bytes
    installs   whether to install a requirements.txt that no parameter names
    """

    def __init__(self, given: dict[str, str]):
        directory = given.get(CACHE, "")
        if directory and not Path(directory).is_absolute():
            raise _wrong(CACHE, directory, "an absolute path")
        self.cache = Path(directory) if directory else None
        most = given.get(MOST, str(1 << 35))
        if not (most.isascii() and most.isdigit() and int(most)):
            raise _wrong(MOST, most, "a positive number")
        self.most = int(most)
        word = given.get(INSTALL, "").lower()
        if word not in _WORDS:
            raise _wrong(INSTALL, word, "true or false")
        self.installs = _WORDS[word]


def _wrong(name: str, found: str, expected: str) -> Exception:
    return invalid(f"--backend-config=python,{name}={found}: expected {expected}")
