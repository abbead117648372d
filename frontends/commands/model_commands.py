"""Commands about one model's folder: `core config` and `core explain`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from core import plugins
from core.errors import CoreError
from core.options import Options

if TYPE_CHECKING:
    from frontends.commands.offline import OfflineModel


class ModelCommand:
    """Base class of commands that print facts about one model; they are core.plugins.commands.Command."""

    summary: str
    loads: bool  # whether the command loads the model once

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, metavar="MODEL_DIR", help="folder of one model")
        parser.add_argument("--version", type=int, help="of the model; else the newest wanted one")
        parser.add_argument("--backend-directory", default="", help="as for core serve")
        parser.add_argument("--repoagent-directory", default="", help="as for core serve")
        parser.add_argument(
            "--disable-auto-complete-config", action="store_true", help="as for core serve"
        )

    def run(self, namespace: argparse.Namespace) -> int:
        """Read the model, load it once if `loads`, print its `text`, and return 0.

        Raises CoreError if the model cannot be read, completed or loaded. Any other error, such as one of
        a backend's code, is printed to stderr, and the result is 1.
        """
        # Imported here: the list of commands does not need it.
        from frontends.commands.offline import offline_model

        options = Options.defaults(
            backend_directory=namespace.backend_directory,
            repoagent_directory=namespace.repoagent_directory,
            disable_auto_complete_config=namespace.disable_auto_complete_config,
        )
        try:
            plugins.load_hooks()
            model = offline_model(namespace.folder, options, namespace.version, tried=self.loads)
            print(self.text(model, options, namespace))
        except CoreError:
            raise
        except Exception as error:  # complete() of a backend may raise anything
            print(f"error: {type(error).__name__}: {error}", file=sys.stderr)
            return 1
        return 0

    def text(self, model: OfflineModel, options: Options, namespace: argparse.Namespace) -> str:
        raise NotImplementedError


class ConfigCommand(ModelCommand):
    """The command `config`: loads a model once, and prints its completed configuration.

    With the Python backend, the top-level code and auto_complete_config of model.py run, and no other method.
    With an ensemble, the models that it calls are loaded, too, from the folders beside its own.
    """

    summary = "load a model and print its completed configuration"
    loads = True

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        super().arguments(parser)
        parser.add_argument("--json", action="store_true", help="as the protocol shows it")

    def text(self, model: OfflineModel, options: Options, namespace: argparse.Namespace) -> str:
        from google.protobuf import text_format

        from core.config import to_json

        if namespace.json:
            return json.dumps(to_json(model.config), indent=2)
        return text_format.MessageToString(model.config).rstrip("\n")


class ExplainCommand(ModelCommand):
    """The command `explain`: prints the stages that requests of a model pass.

    It reads the configuration, completes it with the model's backend, and loads no model. It fails if a
    server could not read or complete it. It does not look at the models that an ensemble calls.
    """

    summary = "print what the requests of a model go through"
    loads = False

    def text(self, model: OfflineModel, options: Options, namespace: argparse.Namespace) -> str:
        from frontends.commands.explain import explain

        return explain(model, options)


config = ConfigCommand()
explain = ExplainCommand()
