"""Settings of log and traces, which clients may read and change while the server runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from core.control.exchange import Changed
from core.control.operation import Area, Arguments, Thing, change, here
from core.errors import invalid, unsupported
from core.telemetry import log
from core.telemetry.tracing import Tracer

_BEFORE = "the others have their settings of before"
_LOG = ("log_info", "log_warning", "log_error", "log_verbose_level", "log_format")
_TRACE = ("trace_level", "trace_rate", "trace_count", "log_frequency")


def _thing(area: str, known: tuple[str, ...]) -> Thing:
    """Settings that are changed together are one thing to repeat: later changes replace earlier ones."""

    def thing(arguments: Arguments) -> str:
        names = [name for name in known if name in arguments["changes"]]
        model = [arguments["model"]] if "model" in arguments else []
        return " ".join([area, *names, *model])

    return thing


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
        """Return what is logged and how, by the names of the logging extension."""
        return log.current()

    @change("logging", thing=_thing("log", _LOG), otherwise=_BEFORE)
    async def change_log_settings(self, changes: Mapping[str, Any]) -> Changed:
        """Change settings of the log, None for no change; return all settings.

        Raises CoreError and changes nothing if one is wrong.
        """
        self._refuse_changes(changes)
        before = log.current()
        del before["log_file"]
        settings = log.change(dict(changes))
        return Changed(settings, undo=lambda: _restore(before))

    @here("trace")
    def trace_settings(self, model: str = "") -> dict[str, Any]:
        """Return what is traced, of the server or of one model, by the names of the trace extension.

        trace_level is a list, all others are text. Raises CoreError(INVALID) for an unknown model.
        """
        self._refuse_unknown(model)
        return self._tracing.settings(model)

    @change("trace", thing=_thing("trace", _TRACE), otherwise=_BEFORE)
    async def change_trace_settings(self, changes: Mapping[str, Any], model: str = "") -> Changed:
        """Change settings of traces, None clears one; return all settings.

        Raises CoreError and changes nothing if one is wrong.
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


def _restore(settings: dict[str, Any]) -> None:
    log.change(settings)
