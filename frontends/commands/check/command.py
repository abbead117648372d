"""`core check PATH…`: the command line of this package."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from core.errors import CoreError, invalid

if TYPE_CHECKING:
    from frontends.commands.check.settings import Settings
    from frontends.commands.check.survey import Survey

summary = "find what is wrong with the models of a repository, without loading them"

FAILED, WRONG_COMMAND = 1, 2

_EPILOG = (
    "The exit status is 0 without errors or if --write mended them, 1 with errors (with --strict, with "
    "warnings, too), without models or if a file cannot be written, and 2 for a wrong command line."
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
        help="load once each model that has no errors, before --write mends others; this runs its code",
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
    """Check the repositories, load (--load), write (--write), and print the findings; return the status.

    A model that --write mends is not loaded in this run. The status is 0 without errors, or if --write has
    mended them all; 1 with errors, without models, or if a file cannot be written; 2, with the reason on
    stderr, for a path or option that is refused. With --strict, warnings count as errors.
    """
    # Imported here: the list of commands does not need them.
    from dataclasses import replace

    from core import plugins
    from frontends.commands.check.loading import load_models
    from frontends.commands.check.survey import check_repositories
    from frontends.commands.paths import served

    try:
        settings = _settings(namespace)
        plugins.load_hooks()
        plugins.flags()  # plugins tell which parameters of models they read
        with served(namespace.paths, trust=namespace.trust) as found:
            settings = replace(settings, allowed=frozenset(found.links))
            survey = check_repositories(found.repositories, settings)
            if namespace.load:
                load_models(survey, settings.options)
            diffs, failed = _write(survey, found.links) if namespace.write else ([], False)
            status = _print(survey, namespace, diffs, found.links)
            return FAILED if failed else status
    except CoreError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return WRONG_COMMAND


def _settings(namespace: argparse.Namespace) -> Settings:
    from core import plugins
    from core.devices.visible import gpus
    from core.options import Options
    from frontends.commands.check.settings import Settings

    options = Options.defaults(
        backend_directory=namespace.backend_directory,
        repoagent_directory=namespace.repoagent_directory,
        model_config_name=namespace.model_config_name,
        disable_auto_complete_config=namespace.disable_auto_complete_config,
        rate_limit_resource=_resources(namespace.rate_limit_resource),
    )
    there = gpus() if namespace.gpus is None else tuple(range(namespace.gpus))
    return Settings(options, there, plugins.formats())


def _resources(given: list[str]) -> dict[str, dict[int, int]]:
    """Return the resources as core serve reads them. Raises CoreError for a text of another form."""
    from core.options.values import RESOURCES, UsageError

    found: dict[str, dict[int, int]] = {}
    try:
        for text in given:
            found = RESOURCES.merge(found, RESOURCES.read("rate-limit-resource", text))
    except UsageError as error:
        raise invalid(str(error)) from None
    return found


def _write(survey: Survey, links: dict[str, str]) -> tuple[list[str], bool]:
    """Write the edits of all models; return the differences, and whether a file could not be written.

    Each such failure is printed to stderr.
    """
    from frontends.commands.check.mending import write
    from frontends.commands.check.output.text import printable
    from frontends.commands.paths import as_written

    diffs, failed = [], False
    for report in survey.reports:
        file = as_written(str(report.config_file), links)
        try:
            diff = write(report, file)
        except OSError as error:
            text = f"error: cannot write '{file}': {error.strerror}"
            print(printable(text), file=sys.stderr)
            failed = True
            continue
        if diff:
            diffs.append(diff)
    return diffs, failed


def _print(
    survey: Survey, namespace: argparse.Namespace, diffs: list[str], links: dict[str, str]
) -> int:
    from frontends.commands.check.naming import name_paths
    from frontends.commands.check.output.json_form import as_json
    from frontends.commands.check.output.sarif import as_sarif
    from frontends.commands.check.output.text import as_text, printable
    from frontends.commands.paths import as_written

    # A person gets the paths that they wrote, a program absolute ones.
    if namespace.format == "text":
        text = as_written(as_text(survey, sys.stdout.isatty()), links)
        if diffs:
            print(printable("\n".join(diffs)))
    else:
        name_paths(survey, links)
        text = as_json(survey, namespace.write) if namespace.format == "json" else as_sarif(survey)
    print(text)
    bad = {"error", "warning"} if namespace.strict else {"error"}
    left = [each for each in survey.general if each.level in bad]
    for report in survey.reports:
        left += [e for e in report.findings if e.level in bad and not report.is_mended(e)]
    return FAILED if left or not survey.reports else 0
