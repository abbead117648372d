"""python -m core.serve: parse the command line and run the server.

    flags ─► log ─► hook core_run_server: a plugin may serve with several processes ─► core/process.py

The program `core-serve` does the same. Exit status: 0 after a signal and a complete drain, 1 otherwise.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence

from core import plugins
from core.errors import CoreError, invalid
from core.options import HelpWanted, Options, UsageError, idle_flags, parse, usage
from core.telemetry import log
from core.telemetry.metrics.settings import MetricSettings

logger = logging.getLogger("core")


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until a signal comes; return the exit status. Print a CoreError and return 1.

    arguments   of the command line, without the program; None for those of this process
    """
    try:
        return _main(sys.argv[1:] if arguments is None else arguments)
    except CoreError as error:
        print(f"error: creating server: {error.kind.title} - {error.message}", file=sys.stderr)
        return 1
    finally:
        _let_go_of_broken_pipes()


def _main(arguments: Sequence[str]) -> int:
    flags = plugins.flags()
    try:
        options = parse(arguments, flags)
    except HelpWanted:
        print(usage(flags), file=sys.stderr)
        return 1
    except UsageError as error:
        print(usage(flags), error, sep="\n", file=sys.stderr)
        return 1
    log.configure(options, console=plugins.ask("core_open_log", options=options, worker=0))
    _say_what_is_idle(options)
    for note in options.notes:
        logger.info("%s", note)
    status: int | None = plugins.ask("core_run_server", options=options, arguments=arguments)
    if status is not None:
        return status
    if options.workers > 1:
        hint = plugins.install_hint("workers")
        raise invalid(f"--workers={options.workers}: nothing installed starts workers{hint}")
    # Imported here: a supervisor needs no module of a server, and no numpy.
    from core.process import run

    return run(options)


def _let_go_of_broken_pipes() -> None:
    """Flush stdout and stderr; redirect one that fails, because its reader has ended, to /dev/null.

    Otherwise the interpreter tries to flush them again at exit, fails, and exits with status 120.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is None or stream.closed:
            continue
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def _say_what_is_idle(options: Options) -> None:
    for flag in idle_flags(options):
        logger.warning("--%s has no effect: %s", flag.name, flag.idle)
    for name in options.backend_config:
        if name and not plugins.is_there(name, options.backend_directory):
            logger.warning(
                "--backend-config=%s has no effect: no backend has that name (installed: %s)",
                name,
                ", ".join(sorted(plugins.available_backends())) or "none",
            )
    for complaint in MetricSettings.of(options.metrics_config).complaints:
        logger.warning("%s", complaint)


if __name__ == "__main__":
    sys.exit(main())
