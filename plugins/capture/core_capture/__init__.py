"""Capture and replay: a server records its requests; the commands `core capture` and `core replay` use them.

recording/   records the calls of a server
records/     the format, and its reader
replay/      sends records again, and compares the answers
tensors/     the tensors in recorded messages
commands/    core capture, core replay
http/        routes: what was captured, and replays to this server
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import core
from core_capture.options import CaptureOptions

if TYPE_CHECKING:
    from core.options import Flags, Options
    from core.server import InferenceServer
    from core_capture.recording.metrics import CaptureMetrics
    from core_capture.recording.recorder import Recorder

CATEGORY = "capture"  # of roles and restrictions: a capture holds the data of users

# Servers of one process, by the identity of objects that core passes to the hooks.
_metrics: dict[int, CaptureMetrics] = {}
_recorders: dict[int, Recorder] = {}


@core.hookimpl
def core_add_options(parser: Flags) -> None:
    from frontends.shared.added_categories import add_category

    add_category(CATEGORY, reading=("manage",), changing=("manage",))
    parser.add_section(CaptureOptions)


@core.hookimpl
def core_open_metric_source(options: Options, worker: int | None) -> CaptureMetrics:
    from core_capture.recording.metrics import CaptureMetrics

    _metrics[id(options)] = found = CaptureMetrics(worker or 0)
    return found


@core.hookimpl
def core_server_starting(server: InferenceServer) -> None:
    """Begin the capture of --capture. Raises CoreError(UNAVAILABLE) for an unusable folder."""
    from core_capture.http.routes import CaptureRoutes
    from core_capture.recording.control import CaptureControl
    from core_capture.recording.metrics import CaptureMetrics
    from core_capture.recording.recorder import Recorder
    from core_capture.recording.selection import Selection
    from frontends.own_ports import restricted_headers
    from frontends.shared.call_observers import CallObservers

    options = CaptureOptions.of(server.options)
    metrics = _metrics.pop(id(server.options), None) or CaptureMetrics(0)
    recorder = Recorder(
        CallObservers.of(server),
        options,
        worker=metrics.worker,
        workers=server.options.workers,
        secret=restricted_headers(server.options),
    )
    metrics.recorder = _recorders[id(server)] = recorder
    control = CaptureControl(recorder, options)
    server.control.add(control)
    CaptureRoutes(options, control).add_to(server)
    if options.capture or options.capture_drift:
        recorder.start(options.capture, Selection.of(options))


@core.hookimpl
def core_server_stopping(server: InferenceServer) -> None:
    recorder = _recorders.pop(id(server), None)
    if recorder is not None and (writer := recorder.stop()) is not None:
        writer.close()
