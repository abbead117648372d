"""python -m core: what is installed here, and what a server would make of a model.

    python -m core                                       backends, frontends and plugins; exit status 0 if all
                                                         of them can be imported, else 1
    python -m core config MODEL_DIR [--json]             load a model once; its completed config.pbtxt
    python -m core explain MODEL_DIR                     what its requests go through
    python -m core token NAME --role infer [--file FILE] a new token, and its line for --auth-tokens
    python -m core encrypt MODEL_DIR COPY_DIR            a copy for the repository agent "decrypt"
    python -m core encrypt --new-key FILE                a key for it

`config` loads the model once, and the models that an ensemble calls from the folders beside it: exit
status 1 and the text of the load if that fails. Of a model.py only auto_complete_config runs. `explain`
imports the model's backend and loads nothing; 1 if a load would fail before that.
`python -m core.serve` is the server.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import core
from core import plugins
from core.errors import CoreError
from core.native.callbacks import ABI_VERSION
from core.options import Options

Row = tuple[str, str, str]


def main(arguments: Sequence[str] = ()) -> int:
    """Do what the arguments say; the exit status."""
    if not arguments:
        return _installed()
    wanted = _parser().parse_args(arguments)
    if wanted.command == "token":
        # Imported here, as below.
        from core.access.issue import issue

        return issue(wanted)
    if wanted.command == "encrypt":
        return _encrypt(wanted)
    options = Options.defaults(
        backend_directory=wanted.backend_directory,
        repoagent_directory=wanted.repoagent_directory,
        disable_auto_complete_config=wanted.disable_auto_complete_config,
    )
    try:
        plugins.load_hooks()
        print(_shown(wanted, options))
    except CoreError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return 1
    except Exception as error:  # of a backend's complete(), which may raise anything
        print(f"error: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


def _encrypt(wanted: argparse.Namespace) -> int:
    from core.repository.agents.encrypt import encrypt_model, write_key

    try:
        if wanted.new_key is not None:
            print(write_key(wanted.new_key))
        elif wanted.folder is None or wanted.copy is None:
            print("error: give MODEL_DIR and COPY_DIR, or --new-key FILE", file=sys.stderr)
            return 2
        else:
            print(encrypt_model(wanted.folder, wanted.copy, wanted.key_env, wanted.key_file))
    except (CoreError, OSError) as error:
        print(f"error: {getattr(error, 'message', error)}", file=sys.stderr)
        return 1
    return 0


def _shown(wanted: argparse.Namespace, options: Options) -> str:
    # Imported here: what is installed can be told without the rooms of a server.
    from google.protobuf import text_format

    from core.config import to_json
    from core.lifecycle.explain import explain
    from core.lifecycle.offline import offline_model

    tried = wanted.command == "config"
    model = offline_model(wanted.folder, options, wanted.version, tried=tried)
    if wanted.command == "explain":
        return explain(model, options)
    if wanted.json:
        return json.dumps(to_json(model.config), indent=2)
    return text_format.MessageToString(model.config).rstrip("\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m core", description="What a server would do.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("config", "load a model and print its completed configuration"),
        ("explain", "print what the requests of a model go through"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("folder", type=Path, metavar="MODEL_DIR", help="folder of one model")
        command.add_argument("--version", type=int, help="of the model; else the newest wanted one")
        command.add_argument("--backend-directory", default="", help="as of core-serve")
        command.add_argument("--repoagent-directory", default="", help="as of core-serve")
        command.add_argument(
            "--disable-auto-complete-config", action="store_true", help="as of core-serve"
        )
        if name == "config":
            command.add_argument("--json", action="store_true", help="as the protocol shows it")
    _add_token(commands)
    text = "encrypt a model's files, for the repository agent decrypt"
    command = commands.add_parser("encrypt", help=text, description=text)
    command.add_argument("folder", type=Path, nargs="?", metavar="MODEL_DIR", help="of one model")
    command.add_argument("copy", type=Path, nargs="?", metavar="COPY_DIR", help="new folder")
    place = command.add_mutually_exclusive_group()
    place.add_argument("--key-file", type=Path, metavar="FILE", help="that holds the key")
    place.add_argument("--key-env", metavar="NAME", help="of the variable; else CORE_MODEL_KEY")
    place.add_argument("--new-key", type=Path, metavar="FILE", help="write a new key, and no more")
    return parser


def _add_token(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "make a token, and its line for --auth-tokens"
    command = commands.add_parser("token", help=text, description=text)
    command.add_argument("name", metavar="NAME", help="who gets it")
    command.add_argument(
        "--role",
        action="append",
        required=True,
        help="infer, read or manage; may be given several times",
    )
    command.add_argument("--file", type=Path, help="append the line to it; else it is printed")
    command.add_argument("--rate", type=float, default=0.0, help="requests a second")
    command.add_argument("--burst", type=float, default=0.0, help="requests at once after a pause")
    command.add_argument("--concurrent", type=int, default=0, help="requests in flight")


def _installed() -> int:
    """Print versions, backends, frontends and plugins; 0 if all can be imported."""
    print(f"core {core.__version__}, backend ABI {ABI_VERSION}, Python {platform.python_version()}")
    healthy = True
    kinds: dict[str, Mapping[str, plugins.Plugin]] = {
        "backends": plugins.available_backends(),
        "frontends": plugins.frontends(),
        "plugins": plugins.with_hooks(),
    }
    for title, installed in kinds.items():
        rows = [(name, plugin.distribution, _health(plugin)) for name, plugin in installed.items()]
        healthy &= all(health == "ok" for *_, health in rows)
        print(f"\n{title}:", *(_aligned(rows) or ["none"]), sep="\n  ")
    return 0 if healthy else 1


def _health(plugin: plugins.Plugin) -> str:
    try:
        plugin.load()
    except CoreError as error:
        return error.message
    return "ok"


def _aligned(rows: Sequence[Row]) -> list[str]:
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(2)]
    return [f"{name:{widths[0]}}  {owner:{widths[1]}}  {health}" for name, owner, health in rows]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
