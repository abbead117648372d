"""Screen: the log as lines for a person, on stderr.

    log records, states of models ─► [Screen] ─► rich's Console

It shows a line for each model that is ready, a paragraph for each that failed, warnings and errors. Records
that only follow the steps of a start and an end (_STEPS) are left out unless the log is verbose.
"""

from __future__ import annotations

import logging
import re
import time
import traceback
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from core.telemetry import log
from frontends.terminal.summary import first_address, places

if TYPE_CHECKING:
    from core.lifecycle import ModelVersion
    from core.options import Options

_STEPS = (
    "All models are stopped",
    "Model '%s' (version %d) has ",
    "Timeout %d: ",
    "failed to start %s service",  # the last line of the start repeats it
    "loading: ",
    "starting %d workers",
    "successfully unloaded ",
    "unloading: ",
)
"""Beginnings of messages, before their arguments, that only say that a step begins or ends."""

_STARTED = "Started "
_LOADED = "successfully loaded "
_FAILED = ("failed to load '%s'", "failed to poll model '%s'")
_STILL_LOADING = "still loading: "
_WORKERS = "all %d workers are up"

_ADDRESS = re.compile(r"^Started (.+) at .*:(\d+)$")
_KIND = re.compile(r"^(?:Invalid argument|Internal|Unavailable|Unsupported|Not found|Unknown): ")
_LAYOUT = "Wrong layout: "
"""After these words, an error says what is wrong with the folder. Only that is shown."""
_COMMAND = re.compile(r"^(.*?)[:,;]? ?`([^`]{24,})`$", re.DOTALL)

_NAME_WIDTH = 24


class _SafeConsole(Console):
    """A Console that ignores a terminal that has gone; rich would end the process."""

    def on_broken_pipe(self) -> None:
        pass


class Screen(logging.Handler):
    """The log handler of the console. Any thread may log; the other methods are for the loop thread.

    worker    number of this process among several workers, from 1; 0 if the server has one process. Workers
              after the first do not show which models are ready
    colours   whether to use colours even if stderr is no terminal; else only if it is one
    ports     title of a service in the log → the port on which it listens; filled from the log
    """

    def __init__(
        self,
        options: Options,
        worker: int = 0,
        *,
        colours: bool = False,
        console: Console | None = None,
    ):
        super().__init__()
        self._console = console or _SafeConsole(
            stderr=True, highlight=False, force_terminal=colours or None
        )
        self._options = options
        self._worker = worker
        self._loaded: dict[str, list[ModelVersion]] = {}  # since the last line about the model
        self._serving: dict[str, set[ModelVersion]] = {}
        self._begins = ""  # format of the time before a line, while the server serves
        self.ports: dict[str, int] = {}
        unicode = self._console.encoding.lower().startswith("utf")
        self._ready_mark, self._failed_mark = ("✓", "✗") if unicode else ("+", "x")

    # lines of the server ------------------------------------------------------------

    def say(self, text: str, style: str = "") -> None:
        """Show a line, with the time before it while the server serves."""
        self._print(Text.assemble((self._time(), "dim"), (log.escaped(text), style)))

    def error(self, text: str) -> None:
        """Show the error that ends the server."""
        self._print(Text(""))
        self._print_text(text, Text("error: ", "bold red"))

    def ready(self, summary: str, places: list[tuple[str, str]]) -> None:
        """Show that the server is ready; from now on, lines begin with the time.

        summary   rest of the line that begins with "ready: "
        places    (word, address or command) for a line each
        """
        self._print(Text(""))
        self._print(Text.assemble(("ready: ", "bold green"), summary))
        for word, place in places:
            self._print(Text.assemble((f"  {word:<9}", "dim"), place), whole=True)
        self._print(Text(""))
        self._begins = "%H:%M:%S "

    def ending(self) -> None:
        """Note that the server ends: lines have no time any more, and models leave service without a line."""
        self._begins = ""
        self._serving.clear()

    # the log ----------------------------------------------------------------------

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._show(record)
        except Exception:
            self.handleError(record)

    def _show(self, record: logging.LogRecord) -> None:
        message = str(record.msg)
        if getattr(record, "block", False):
            if self.is_verbose:
                self._print(Text(record.getMessage()), whole=True)
        elif record.levelno >= logging.ERROR and message.startswith(_FAILED):
            self._model_failed(record)
        elif record.levelno >= logging.WARNING and not message.startswith(_STEPS):
            self._problem(record)
        elif message.startswith(_STARTED):
            if match := _ADDRESS.match(record.getMessage()):
                self.ports[match[1]] = int(match[2])
        elif self._worker > 1:
            pass
        elif message.startswith(_LOADED):
            self._model_is_ready(str(_arguments(record)[0]))
        elif message.startswith(_STILL_LOADING):
            what, seconds, step = _arguments(record)
            self._note(f"still loading '{what.rpartition(':')[0]}', {seconds}: it {step}")
        elif message == _WORKERS:
            (number,) = _arguments(record)
            parts = [f"{number} workers", *first_address(self._options, self.ports)]
            self.ready(", ".join(parts), places(self._options, self.ports))
        elif self.is_verbose or not message.startswith(_STEPS):
            self._note(record.getMessage())

    @property
    def is_verbose(self) -> bool:
        """Whether the log level for verbose messages is above 0 now."""
        return bool(log.current()["log_verbose_level"])

    def _note(self, text: str) -> None:
        self._print(Text(self._time() + log.escaped(text), "dim"))

    def _problem(self, record: logging.LogRecord) -> None:
        """Show a record that is a warning or an error, with its traceback if it has one."""
        is_error = record.levelno >= logging.ERROR
        word, style = ("error: ", "bold red") if is_error else ("warning: ", "bold yellow")
        before = Text.assemble((self._time(), "dim"), (word, style), self._origin)
        self._print_text(record.getMessage(), before)
        self._print_trace(record)

    def _print_trace(self, record: logging.LogRecord) -> None:
        trace = record.exc_text or ""  # of another process
        if record.exc_info and record.exc_info[0] is not None:
            trace = "".join(traceback.format_exception(*record.exc_info))
        for line in trace.splitlines():
            self._print(Text(log.escaped(line), "dim"), indent=4)

    # models -----------------------------------------------------------------------

    def changed(self, model: ModelVersion, state: str) -> None:
        """Take the new state of a version from the hook core_model_changed.

        A version that is ready is kept until the log record "successfully loaded", which prints one line for
        all versions of its model. When no version of a model is ready any more, a line says so, but only
        while the server serves.
        """
        serving = self._serving.setdefault(model.key, set())
        if state == "ready":
            self._loaded.setdefault(model.key, []).append(model)
            serving.add(model)
        elif state == "unloading":
            serving.discard(model)
            if model in (loaded := self._loaded.get(model.key, [])):
                loaded.remove(model)  # its record has not come, or another worker shows it
            if not serving and self._begins:
                self._note(f"'{model.key}' leaves service")

    def _model_is_ready(self, name: str) -> None:
        loaded = self._loaded.pop(name, [])
        line = Text.assemble(
            (self._time(), "dim"), (f"  {self._ready_mark} ", "bold green"), log.escaped(name)
        )
        if loaded:
            line.pad_right(max(1, _NAME_WIDTH - len(line)))
            line.append(f"{max(each.load_seconds for each in loaded):.1f} s", "dim")
        if len(loaded) > 1:
            numbers = ", ".join(str(each.version) for each in loaded)
            line.append(f"  versions {numbers}", "dim")
        self._print(line)

    def _model_failed(self, record: logging.LogRecord) -> None:
        name, *_, reason = _arguments(record)
        version = _arguments(record)[1] if len(_arguments(record)) > 2 else 1
        self._print(
            Text.assemble(
                (self._time(), "dim"),
                (f"  {self._failed_mark} ", "bold red"),
                self._origin,
                log.escaped(str(name)),
                (f" version {version}" if version != 1 else "", "dim"),
            )
        )
        self._print_text(_KIND.sub("", str(reason).rpartition(_LAYOUT)[2]), indent=4)
        if self.is_verbose:
            self._print_trace(record)

    # writing ------------------------------------------------------------------------

    @property
    def _origin(self) -> str:
        return f"worker {self._worker}: " if self._worker > 1 else ""

    def _time(self) -> str:
        return time.strftime(self._begins)

    def _print_text(self, text: str, before: Text | None = None, *, indent: int = 0) -> None:
        """Write an error text. A command at its end gets a line of its own, so that a person can copy it.

        before   what the first line begins with
        indent   blanks before each line. With 0, the whole text is one paragraph, since it may come from a
                 client and must not forge lines of the server; else it keeps its lines
        """
        command = ""
        if match := _COMMAND.match(text):
            text, command = match.groups()
        for line in filter(str.strip, text.split("\n") if indent else [text]):
            self._print(Text.assemble(before or "", log.escaped(line)), indent=indent)
            before = None
        if command:
            self._print(
                Text.assemble(("    $ ", "dim"), (log.escaped(command), "bold")), whole=True
            )

    def _print(self, text: Text, *, indent: int = 0, whole: bool = False) -> None:
        """Write a paragraph, wrapped between words. Nothing happens if the terminal has gone.

        indent   blanks before each line
        whole    whether to leave the paragraph on one line, so that a person can copy it
        """
        lines = [text] if whole else text.wrap(self._console, self._console.width - indent)
        try:
            for line in lines:
                line.rstrip()
                self._console.print(Text(" " * indent).append_text(line), soft_wrap=True)
        except OSError:  # the terminal has gone
            pass


def _arguments(record: logging.LogRecord) -> tuple[Any, ...]:
    return record.args if isinstance(record.args, tuple) else (record.args,)
