"""The agent "decrypt": decrypt files of `core encrypt` while the model is loaded.

    parameters { key: "key_env" value: "MODEL_KEY" }          or
    parameters { key: "key_file" value: "/run/secrets/model.key" }
    parameters { key: "require_all" value: "true" }           refuse unencrypted files

Without key_env and key_file the key is in CORE_MODEL_KEY. The decrypted files are in a folder that only this
user can enter: in memory if they fit, else on disk.
"""

from __future__ import annotations

import errno
import logging
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import core
from core.errors import CoreError, invalid
from core.repository import files_of, is_configuration, version_number
from core_encryption.format import KEY_ENVIRONMENT, SUFFIX, decrypt, keys_of

if TYPE_CHECKING:
    from core.repository.agents import AgentModel

logger = logging.getLogger("core")

_PARAMETERS = ("key_env", "key_file", "require_all")


class DecryptAgent(core.RepositoryAgent):
    def load(self, model: AgentModel) -> None:
        """Replace the model's folder by one with its files decrypted, and the unencrypted ones copied.

        It is in memory if the files fit, else in a folder of this user. Raises CoreError for wrong
        parameters, a missing or wrong key, changed files, a file that is there encrypted and unencrypted, and
        with `require_all` for an unencrypted file that is no configuration.
        """
        keys = keys_of(*_place_of_keys(model.parameters))
        files = files_of(model.location)
        _refuse_files(files, model.is_true("require_all"))
        size = sum((model.location / file).stat().st_size for file in files)
        folder = model.acquire(memory_bytes=size)
        try:
            _bring_all(model.location, folder, files, keys)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            # Several models that are decrypted at the same time do not fit together.
            model.release()
            folder = model.acquire()
            logger.warning(
                "files of model '%s' are decrypted to '%s', which may be a disk: memory has become full",
                model.name,
                folder,
            )
            _bring_all(model.location, folder, files, keys)
        model.update(folder)


def _place_of_keys(parameters: dict[str, str]) -> tuple[str | None, str | None]:
    """Return (name of the environment variable with the keys, None), or (None, file with the keys).

    Without a parameter, that is the variable CORE_MODEL_KEY. Raises CoreError(INVALID) for an unknown
    parameter, and if both are given.
    """
    for key in parameters:
        if key not in _PARAMETERS:
            hint = "a key never stands in a configuration; " if "key" in key else ""
            raise invalid(f"unknown parameter '{key}': {hint}there are {', '.join(_PARAMETERS)}")
    variable, file = parameters.get("key_env"), parameters.get("key_file")
    if variable is not None and file is not None:
        raise invalid("there are both 'key_env' and 'key_file': one of them says where the key is")
    return (None, file) if file is not None else (variable or KEY_ENVIRONMENT, None)


def _refuse_files(files: list[str], require_all: bool) -> None:
    for file in files:
        if file.endswith(SUFFIX) and file.removesuffix(SUFFIX) in files:
            raise invalid(f"there are both {file} and {file.removesuffix(SUFFIX)}")
        if require_all and not file.endswith(SUFFIX) and not is_configuration(file):
            raise invalid(f"file {file} is not encrypted, and 'require_all' is true")


def _bring_all(source: Path, target: Path, files: list[str], keys: list[bytes]) -> None:
    for folder in source.iterdir():  # version folders of ensembles are empty
        if folder.is_dir() and version_number(folder.name) is not None:
            (target / folder.name).mkdir(mode=0o700, exist_ok=True)
    for file in files:
        _bring(source / file, target / file, keys, file)


def _bring(source: Path, target: Path, keys: list[bytes], name: str) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not name.endswith(SUFFIX):
        shutil.copyfile(source, target)
        return
    with (
        source.open("rb") as opened,
        target.with_name(target.name.removesuffix(SUFFIX)).open("xb") as made,
    ):
        try:
            decrypt(opened, made, keys)
        except CoreError as error:
            raise CoreError(
                error.kind, f"file {name} cannot be decrypted: {error.message}"
            ) from error
