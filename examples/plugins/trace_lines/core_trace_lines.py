"""A trace exporter: --trace-config=mode=lines writes each traced request as one line of JSON."""

import asyncio
import json
import queue
import threading

import core
from core.errors import invalid
from core.telemetry.tracing import TraceExporter


@core.hookimpl
def core_open_trace_exporter(mode, settings):
    if mode != "lines":
        return None
    path = dict(settings).get("file")
    if path is None:
        raise invalid("trace mode 'lines' needs --trace-config=lines,file=<path>")
    return LineExporter(path)


class LineExporter(TraceExporter):
    """A thread writes the file: `export` runs on the event loop and must not wait for a disk."""

    def __init__(self, path):
        self.shown = {"file": path}  # clients read it with the trace extension
        self._traces = queue.SimpleQueue()
        # Appends, so that several worker processes can share the file.
        self._file = open(path, "a")  # noqa: SIM115  the thread closes it
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def export(self, trace):
        self._traces.put(trace)

    async def close(self, timeout_s):
        self._traces.put(None)
        await asyncio.to_thread(self._thread.join, timeout_s)

    def _write(self):
        with self._file as file:
            while (trace := self._traces.get()) is not None:
                start_ns = min((ns for ns, _ in trace.stamps()), default=0)
                line = {"model": trace.model_name, "id": trace.request_id, "error": trace.error}
                line["us"] = {name: (ns - start_ns) // 1000 for ns, name in trace.stamps()}
                line["calls"] = [each.model_name for each in trace.children]
                file.write(json.dumps(line) + "\n")
                file.flush()
