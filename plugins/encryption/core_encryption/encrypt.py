"""Encrypt a model's folder: `core encrypt`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from core import config as configuration
from core.errors import invalid
from core.repository import files_of, is_configuration
from core_encryption.format import KEY_ENVIRONMENT, SUFFIX, encrypt, keys_of, new_key


def write_key(file: Path) -> str:
    """Write a new key to a new file that only this user can read; return a message for the user.

    Raises CoreError(INVALID) if the file exists already or cannot be created.
    """
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise invalid(f"key file '{file}' cannot be made: {error.strerror}") from error
    with open(descriptor, "w", encoding="ascii") as opened:
        opened.write(new_key() + "\n")
    return f"a new key is in {file}; who has it can read what is encrypted with it"


def encrypt_model(
    source: Path, target: Path, variable: str | None = None, key_file: Path | None = None
) -> str:
    """Write a copy of a model with encrypted files; return a message for the user.

    source, target      folder of the model; new folder for the copy
    variable, key_file  environment variable or file with the key, by default CORE_MODEL_KEY. Of several keys
                        the first one encrypts; a file is preferred

    Configurations are copied unencrypted; those of the copy name the agent "decrypt". A copy that fails is
    removed. Raises CoreError(INVALID) for a missing key, a source that is no folder, a target that exists or
    is inside the source, and a configuration that names only other agents.
    """
    file = str(key_file.absolute()) if key_file is not None else None
    key = keys_of(variable or KEY_ENVIRONMENT, file)[0]
    if not source.is_dir():
        raise invalid(f"there is no folder '{source}'; give that of one model")
    if target.absolute().is_relative_to(source.absolute()):
        raise invalid(f"'{target}' lies in '{source}': the copy must be elsewhere")
    try:
        target.mkdir(parents=True)
    except FileExistsError as error:
        raise invalid(f"'{target}' is there already; give a new folder") from error
    try:
        count = _copy(source, target, key)
        _name_agent(target, variable, file)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    return f"encrypted {count} of the files of {source} in {target}"


def _copy(source: Path, target: Path, key: bytes) -> int:
    count = 0
    for name in files_of(source):
        made = target / (name if is_configuration(name) else name + SUFFIX)
        made.parent.mkdir(parents=True, exist_ok=True)
        if is_configuration(name):
            shutil.copyfile(source / name, made)
        else:
            with (source / name).open("rb") as opened, made.open("xb") as written:
                encrypt(opened, written, key)
            count += 1
    for folder in source.iterdir():  # version folders of ensembles are empty
        if folder.is_dir() and folder.name.isdecimal():
            (target / folder.name).mkdir(exist_ok=True)
    return count


def _name_agent(target: Path, variable: str | None, key_file: str | None) -> None:
    """Add the agent "decrypt" to each configuration in `target` that names no agents.

    Without a config.pbtxt, make one. `variable` and `key_file` say where the key is; at most one is needed.

    Raises CoreError(INVALID) for a configuration that names only other agents.
    """
    place = ("key_file", key_file) if key_file is not None else ("key_env", variable)
    said = f' parameters {{ key: "{place[0]}" value: "{place[1]}" }}' if place[1] else ""
    block = f'model_repository_agents {{ agents [ {{ name: "decrypt"{said} }} ] }}\n'
    main = target / "config.pbtxt"
    main.touch()
    for each in [main, *sorted(target.glob("configs/*.pbtxt"))]:
        text = each.read_text("utf-8")
        agents = configuration.parse_text(text, str(each)).model_repository_agents.agents
        if agents and not any(agent.name == "decrypt" for agent in agents):
            raise invalid(
                f"the configuration names the agent '{agents[0].name}' and not \"decrypt\": add it by hand, "
                f"before those that read what is encrypted and after those that read it as it lies there"
            )
        if not agents:
            each.write_text(
                text + ("" if text.endswith("\n") or not text else "\n") + block, "utf-8"
            )
