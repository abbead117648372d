"""`core init REPOSITORY FILE…`: make a model repository from files.

FILE ─► make_model ─► offline_model completes the configuration ─► REPOSITORY/NAME/config.pbtxt
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from core import plugins
from core.errors import CoreError, already_exists, invalid
from core.options import Options

if TYPE_CHECKING:
    from core.config import ModelConfig
    from frontends.commands.model_file import ModelFile

summary = "make a model repository from files"

_LEFT_OUT = ("name", "platform", "version_policy", "instance_group", "optimization")
"""Fields that a load sets to defaults, and that say nothing about the model."""

_TENSORS = """
# Write what clients send and get, then: core check {repository}
# input [ {{ name: "x" data_type: TYPE_FP32 dims: [ -1, 4 ] }} ]
# output [ {{ name: "y" data_type: TYPE_FP32 dims: [ -1, 2 ] }} ]
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "repository", type=Path, metavar="REPOSITORY", help="new or existing folder"
    )
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="of a model")
    parser.add_argument(
        "--name", default="", help="of the model, for one FILE; else the file's name"
    )
    parser.add_argument(
        "--link", action="store_true", help="link the files instead of copying them"
    )
    parser.add_argument(
        "--trust",
        action="store_true",
        help="read files that can hold code, such as pickles, which then runs with your rights",
    )
    parser.epilog = "The exit status is 1 if a model does not load as it is."


def run(namespace: argparse.Namespace) -> int:
    """Make a model of each FILE, load it once, and print what was made.

    Return 0 if all models load, else 1. Raises CoreError before anything is made if a FILE is refused, the
    name of a model is taken, or --name is given with several files. Raises CoreError, too, if a file cannot
    be put into the repository; models that were made before stay.
    """
    from frontends.commands.model_file import model_file

    if namespace.name and len(namespace.files) > 1:
        raise invalid(f"--name={namespace.name} names one model, and there are several files")
    formats, repository = plugins.formats(), namespace.repository
    models = [
        model_file(each, formats, name=namespace.name, trust=namespace.trust)
        for each in namespace.files
    ]
    _check_names(models, repository)
    plugins.load_hooks()
    try:
        complete = [_made(each, repository, link=namespace.link) for each in models]
    except OSError as error:
        raise invalid(f"'{repository}' cannot be written: {error}") from error
    if all(complete):
        print(f"to serve: core serve {repository}")
        return 0
    return 1


def _check_names(models: list[ModelFile], repository: Path) -> None:
    """Raise CoreError if two models have the same name, or if the repository has an entry of that name."""
    taken: dict[str, Path] = {}
    for each in models:
        folder = repository / each.name
        if each.name in taken:
            raise invalid(f"'{taken[each.name]}' and '{each.path}' are both named '{each.name}'")
        if folder.exists() or folder.is_symlink():
            raise already_exists(
                f"'{folder}' exists: remove it, or make '{each.path}' alone with --name"
            )
        taken[each.name] = each.path


def _made(file: ModelFile, repository: Path, *, link: bool) -> bool:
    """Make the folder of one model, load the model once, write its config.pbtxt; return whether it loads.

    The folder of a model that does not load stays, with a config.pbtxt for the user to complete; the reason
    goes to stderr. If the folder cannot be made, it is removed again, and the error is raised: OSError.
    """
    from frontends.commands.explain import tensors
    from frontends.commands.model_file import make_model
    from frontends.commands.offline import offline_model

    folder = repository / file.name
    try:
        make_model(file, folder, link=link)
    except BaseException:  # leave no half model
        shutil.rmtree(folder, ignore_errors=True)
        raise
    head = f"# Made by `core init` from {file.path.name}.\n"
    config = folder / "config.pbtxt"
    try:
        model = offline_model(folder, Options.defaults(), tried=True)
    except Exception as error:  # the code of a model may raise anything
        reason = (
            error.message if isinstance(error, CoreError) else f"{type(error).__name__}: {error}"
        )
        config.write_text(head + _incomplete(file, config, reason, repository))
        print(f"{folder}: made, but it does not load: {reason}", file=sys.stderr)
        print(f"edit {config}, then: core check {repository}", file=sys.stderr)
        return False
    config.write_text(head + _text(model.config))
    print(f"{folder}: backend {model.config.backend}, {tensors(model)}")
    return True


def _text(completed: ModelConfig) -> str:
    """Return the text of a config.pbtxt: the completed configuration without the fields in _LEFT_OUT."""
    from google.protobuf import text_format

    from core.config import ModelConfig

    kept = ModelConfig()
    kept.CopyFrom(completed)
    for name in _LEFT_OUT:
        kept.ClearField(name)
    return text_format.MessageToString(kept)


def _incomplete(file: ModelFile, config: Path, reason: str, repository: Path) -> str:
    """Return the text of a config.pbtxt for the user to complete, for a model that does not load.

    It has the reason as a comment, the fields that the file `config` has, names of backend and file unless
    that file has `default_model_filename`, and examples of `input` and `output` as comments.
    """
    why = "".join(f"#   {line}\n" for line in reason.splitlines())
    given = config.read_text() if config.exists() else ""
    if "default_model_filename" not in given:
        given += f'backend: "{file.format.backend}"\ndefault_model_filename: "{file.format.file}"\n'
    return f"# It does not load yet:\n{why}{given}{_TENSORS.format(repository=repository)}"
