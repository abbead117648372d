"""The command `core run`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
import time
from pathlib import Path
from typing import Any

from core.errors import invalid
from core.request import NEWEST
from core_jobs.offline.inputs.files import Inputs, found_files
from core_jobs.offline.outputs.folder import ERRORS, RESULTS, OutputFolder
from core_jobs.offline.outputs.forms import FORMS
from core_jobs.offline.progress import Progress, duration
from core_jobs.offline.run import OfflineRun, RunSettings, TooManyErrors
from core_jobs.offline.targets.target import Target

summary = "run a model on files, without ports or against a running server"

_STOPPED = 130  # exit status after Ctrl-C, as shells have it


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", metavar="MODEL", help="name of the model, or the folder of one")
    add(
        "--input",
        nargs="+",
        required=True,
        metavar="PATH",
        help="files, folders or patterns such as 'images/*.jpg': .jsonl, .npy, .npz, .txt with a text in "
        "each line, captures; any other file is one input as it is",
    )
    add("--output", required=True, metavar="FOLDER", help="folder for the results")
    add(
        "--model-repository",
        action="append",
        default=[],
        metavar="PATH",
        help="repository with the model, which then runs in this process; repeatable",
    )
    add("--url", metavar="URL", help="HTTP address of a running server, such as localhost:8000")
    add("--version", type=int, default=NEWEST, metavar="N", help="of the model (the newest)")
    add(
        "--format",
        choices=FORMS,
        default="jsonl",
        help="of the outputs: in the lines of results.jsonl, a .npz for each request, or a file with the "
        "bytes of each output (%(default)s)",
    )
    add("--input-name", default="", metavar="NAME", help="input that files without names feed")
    add(
        "--rows",
        type=int,
        default=1,
        metavar="N",
        help="rows of an array, or lines of a text, in one request (%(default)s)",
    )
    add(
        "--concurrency",
        type=int,
        default=16,
        metavar="N",
        help="requests at the model at a time (%(default)s)",
    )
    add(
        "--max-errors",
        type=int,
        default=10,
        metavar="N",
        help="stop when more requests have failed; -1 for any number (%(default)s)",
    )
    add(
        "--header",
        action="append",
        default=[],
        metavar="NAME: VALUE",
        help="header field for --url, such as a token; repeatable",
    )
    add("--timeout", type=float, default=300.0, metavar="S", help="seconds for a response of --url")
    add(
        "--patience",
        type=float,
        default=60.0,
        metavar="S",
        help="seconds for which a request is repeated that the server had no room for (%(default)s)",
    )


def run(namespace: argparse.Namespace) -> int:
    """Run the model. Return 0 if each request has succeeded, 1 if some have failed, 130 after Ctrl-C."""
    for name, least in (("rows", 1), ("concurrency", 1), ("max_errors", -1)):
        if getattr(namespace, name) < least:
            flag = f"--{name.replace('_', '-')}"
            raise invalid(f"{flag}={getattr(namespace, name)}: give a number from {least} on")
    output = Path(namespace.output)
    files = found_files(namespace.input, output)
    inputs = Inputs(files, namespace.rows, namespace.input_name, output)
    inputs.check_input_name()
    if any(each.is_dir() and output.resolve().is_relative_to(each.resolve()) for each in files):
        _say(f"the folder of --output, '{output}', is within --input: its files are no inputs")
    return asyncio.run(_run(namespace, inputs))


async def _run(namespace: argparse.Namespace, inputs: Inputs) -> int:
    target, model = _target(namespace)
    folder = OutputFolder(Path(namespace.output), _identity(namespace, model, inputs))
    before, begun_s = folder.done, time.monotonic()
    if before:
        _say(f"{before:,} requests are done already in '{folder.path}'; going on")
    progress = Progress(inputs.bytes)
    settings = RunSettings(
        namespace.format, namespace.concurrency, namespace.max_errors, namespace.patience
    )
    state = "stopped"
    try:
        signature = await target.open()
        work = OfflineRun(target, inputs, folder, settings, progress)
        with _stopping(work):
            if await work.run(signature):
                state = "complete"
    except TooManyErrors as error:
        state = (
            f"stopped: more than {namespace.max_errors} requests have failed, at last with: {error}"
        )
    finally:
        progress.clear()
        folder.flush()
        await target.close()
    _report(folder, before, time.monotonic() - begun_s, state)
    if state == "stopped":
        return _STOPPED
    return 1 if folder.failed else 0


def _target(namespace: argparse.Namespace) -> tuple[Target, str]:
    """Return where the requests go, and the name of the model."""
    model, repositories = namespace.model, list(namespace.model_repository)
    if namespace.url is not None:
        if repositories:
            raise invalid("--url and --model-repository exclude each other")
        from core_jobs.offline.targets.over_http import OverHttp

        headers = dict(_header(each) for each in namespace.header)
        return OverHttp(model, namespace.version, namespace.url, headers, namespace.timeout), model
    if not repositories:
        path = Path(model).absolute()
        if not path.is_dir():
            raise invalid(
                f"where is model '{model}'? Give its repository with --model-repository, a running server "
                "with --url, or the folder of the model in place of its name"
            )
        model, repositories = path.name, [str(path.parent)]
    from core_jobs.offline.targets.in_process import InProcess

    return InProcess(model, namespace.version, repositories), model


def _identity(namespace: argparse.Namespace, model: str, inputs: Inputs) -> dict[str, Any]:
    """Return what must be the same when a run goes on in its folder."""
    return {
        "model": model,
        "version": namespace.version,
        "format": namespace.format,
        "inputs": [str(each) for each in inputs.files],
        "fingerprint": inputs.fingerprint(),
    }


@contextlib.contextmanager
def _stopping(work: OfflineRun) -> Any:
    """Let the first Ctrl-C end a run in order, and the next one at once."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(each)
        work.stop()

    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stop)
    try:
        yield
    finally:
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(each)


def _report(folder: OutputFolder, before: int, took_s: float, state: str) -> None:
    count = folder.done - before
    folder.close()
    text = f"{count:,} requests in {duration(took_s)}"
    if count and took_s:
        text += f", {count / took_s:,.0f}/s"
    text += f": results in {folder.path / RESULTS}"
    if folder.failed:
        text += f", {folder.failed:,} failed: see {folder.path / ERRORS}"
    _say(text)
    if state != "complete":
        _say(f"{state}; the same command goes on after the {folder.done:,} requests that are done")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise invalid(f"--header '{text}': expected NAME: VALUE")
    return name.strip(), value.strip()
