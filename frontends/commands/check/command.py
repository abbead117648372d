"""`core check PATH…`: the command line of this package."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import CoreError

if TYPE_CHECKING:
    from frontends.commands.check.settings import Settings
    from frontends.commands.check.survey import Survey

summary = "find what is wrong with the models of a repository, without loading them"

FAILED, WRONG_COMMAND = 1, 2

_EPILOG = (
    "The exit status is 0 without errors, 1 with errors (with --strict, with warnings, too), and 2 for a "
    "wrong command line."
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="repository, folder of a model, or file"
    )
    parser.add_argument("--format", choices=("text", "json", "sarif"), default="text")
    parser.add_argument("--strict", action="store_true", help="fail for warnings, too")
    parser.add_argument(
        "--write",
        action="store_true",
        help="mend what has one right answer in config.pbtxt, and print the changes",
    )
    parser.add_argument(
        "--load",
        action="store_true",
        help="then load each model without errors once, which runs its code",
    )
    parser.add_argument(
        "--gpus",
        type=_count,
        default=None,
        metavar="N",
        help="check for a machine with N GPUs; else for this one",
    )
    parser.add_argument("--trust", action="store_true", help="as for core serve")
    parser.add_argument("--backend-directory", default="", help="as for core serve")
    parser.add_argument("--repoagent-directory", default="", help="as for core serve")
    parser.add_argument("--model-config-name", default="", help="as for core serve")
    parser.add_argument(
        "--disable-auto-complete-config", action="store_true", help="as for core serve"
    )
    parser.add_argument(
        "--rate-limit-resource",
        action="append",
        default=[],
        metavar="NAME:COUNT[:DEVICE]",
        help="as for core serve; repeatable",
    )
    parser.epilog = _EPILOG


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 1024:
        raise argparse.ArgumentTypeError(f"'{text}': expected a number of GPUs, such as 2")
    return int(text)


def run(namespace: argparse.Namespace) -> int:
    """Check the repositories and print the findings; return 0, 1 or 2."""
    # Imported here: the list of commands does not need them.
    from core import plugins
    from frontends.commands.check.loading import load_models
    from frontends.commands.check.survey import check_repositories
    from frontends.commands.paths import served

    try:
        settings = _settings(namespace)
        plugins.load_hooks()
        with served(namespace.paths, trust=namespace.trust) as found:
            settings = _allowing(settings, found.links)
            survey = check_repositories(found.repositories, settings, _without_models)
            if namespace.load:
                load_models(survey, settings.options)
            diffs = _write(survey, namespace) if namespace.write else []
            return _print(survey, namespace, diffs, found.links)
    except CoreError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return WRONG_COMMAND


def _settings(namespace: argparse.Namespace) -> Settings:
    from core import plugins
    from core.devices.visible import gpus
    from core.options import Options
    from frontends.commands.check.rates import resources
    from frontends.commands.check.settings import Settings

    options = Options.defaults(
        backend_directory=namespace.backend_directory,
        repoagent_directory=namespace.repoagent_directory,
        model_config_name=namespace.model_config_name,
        disable_auto_complete_config=namespace.disable_auto_complete_config,
        rate_limit_resource=resources(namespace.rate_limit_resource),
    )
    there = gpus() if namespace.gpus is None else tuple(range(namespace.gpus))
    return Settings(options, there, plugins.formats())


def _allowing(settings: Settings, links: dict[str, str]) -> Settings:
    from dataclasses import replace

    return replace(settings, allowed=frozenset(links))


def _without_models(repository: Path) -> str:
    from frontends.commands.check.layout import without_models

    return without_models(repository)


def _write(survey: Survey, namespace: argparse.Namespace) -> list[str]:
    """Write the edits of all models; return the differences."""
    from frontends.commands.check.mending import write

    diffs = []
    for report in survey.reports:
        try:
            diff, _ = write(report, str(report.config_file))
        except OSError as error:
            print(f"error: cannot write '{report.config_file}': {error.strerror}", file=sys.stderr)
            continue
        if diff:
            diffs.append(diff)
    return diffs


def _print(
    survey: Survey, namespace: argparse.Namespace, diffs: list[str], links: dict[str, str]
) -> int:
    from frontends.commands.check.output.json_form import as_json
    from frontends.commands.check.output.sarif import as_sarif
    from frontends.commands.check.output.text import as_text, printable

    made = {"text": as_text, "json": as_json, "sarif": as_sarif}[namespace.format]
    text = made(survey, bool(namespace.write), sys.stdout.isatty())
    for link, path in links.items():
        text = text.replace(link, path)
    if diffs and namespace.format == "text":
        print(printable("\n".join(diffs)))
    print(text)
    bad = {"error", "warning"} if namespace.strict else {"error"}
    left = [each for each in survey.findings if each.level in bad]
    if namespace.write:
        left = [each for each in left if each.edit is None]
    return FAILED if left or not survey.reports else 0
