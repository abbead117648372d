"""Settings of log and traces, which clients may read and change while the server runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from core import plugins
from core.control.exchange import Changed
from core.control.operation import Area, Arguments, Subject, change, here
from core.errors import internal, invalid, unsupported
from core.options import Options
from core.telemetry import log
from core.telemetry.tracing import TraceExporter, Tracer
from core.telemetry.tracing.settings import TRITON

_BEFORE = "the others have their settings of before"
_LOG = ("log_info", "log_warning", "log_error", "log_verbose_level", "log_format")
_TRACE = ("trace_level", "trace_rate", "trace_count", "log_frequency")


def _subject(area: str, known: tuple[str, ...]) -> Subject:
    """Return a function that makes the subject of a change, such as "trace trace_rate m".

    A subject consists of the area, the settings that change, and the model if there is one. A process that
    starts later repeats only the last change of each subject (see Exchange.change).
    """

    def subject(arguments: Arguments) -> str:
        names = [name for name in known if name in arguments["changes"]]
        model = [arguments["model"]] if arguments.get("model") else []
        return " ".join([area, *names, *model])

    return subject


class SettingsControl(Area, name="settings"):
    """Reads and changes settings.

    changeable   whether clients may change them (--allow-remote-settings)
    traceable    whether a model of that name serves
    """

    def __init__(self, tracing: Tracer, changeable: bool, traceable: Callable[[str], bool]):
        self._tracing = tracing
        self._changeable = changeable
        self._traceable = traceable

    @here("logging")
    def log_settings(self) -> dict[str, Any]:
        """Return what is logged and how, by the names of the logging extension: bool, int or str."""
        return log.current()

    @change("logging", subject=_subject("log", _LOG), otherwise=_BEFORE)
    async def change_log_settings(self, changes: Mapping[str, Any]) -> Changed:
        """Change settings of the log, None for no change; return all settings.

        Raises CoreError and changes nothing if one is wrong, or without --allow-remote-settings.
        """
        self._refuse_changes(changes)
        before = log.current()
        del before["log_file"]
        settings = log.change(dict(changes))
        return Changed(settings, undo=lambda: log.change(before))

    @here("trace")
    def trace_settings(self, model: str = "") -> dict[str, Any]:
        """Return what is traced, of the server or of one model, by the names of the trace extension.

        trace_level is a list, all others are text. Raises CoreError(INVALID) for a model that does not serve.
        """
        self._refuse_unknown(model)
        return self._tracing.settings(model)

    @change("trace", subject=_subject("trace", _TRACE), otherwise=_BEFORE)
    async def change_trace_settings(self, changes: Mapping[str, Any], model: str = "") -> Changed:
        """Change settings of traces, None clears one; return all settings.

        Raises CoreError and changes nothing if one is wrong, or without --allow-remote-settings.
        """
        self._refuse_changes(changes)
        self._refuse_unknown(model)
        return Changed(self._tracing.change(dict(changes), model))

    def _refuse_unknown(self, model: str) -> None:
        if model and not self._traceable(model):
            raise invalid(f"Request for unknown model : {model}")

    def _refuse_changes(self, changes: Mapping[str, Any]) -> None:
        if changes and not self._changeable:
            raise unsupported(
                "changing settings is turned off; start the server with --allow-remote-settings=true"
            )


def open_exporter(options: Options) -> TraceExporter | None:
    """Return the exporter that a plugin opens for the mode of --trace-config; None for trace files.

    A plugin may take mode triton, too. Raises CoreError: INVALID for a mode that no installed plugin
    has, INTERNAL for what is no TraceExporter, and what `plugins.ask` raises.
    """
    config = options.trace_config
    mode = dict(config.get("", ())).get("mode", TRITON).lower()
    settings = tuple(config.get(mode, ()))
    found = plugins.ask("core_open_trace_exporter", mode=mode, settings=settings, options=options)
    opened = {"", TRITON} if found is None else {"", TRITON, mode}
    for each in sorted({mode, *config} - opened):
        hint = plugins.install_hint(each)
        if not hint:
            raise invalid(
                f"--trace-config mode: invalid value for trace mode option: {each}. "
                f'Available options are "{TRITON}" and the modes of installed plugins'
            )
        if each == mode:
            raise invalid(f"--trace-config=mode={mode}: no installed plugin has this mode{hint}")
    if not isinstance(found, TraceExporter | None):
        raise internal(
            f"the plugin of trace mode '{mode}' made a {type(found).__name__}, not a "
            "core.telemetry.tracing.TraceExporter"
        )
    return found
