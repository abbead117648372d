"""A metric source: --disk=PATH adds the free space of the disk with PATH to the metrics."""

import shutil
import threading

import core
from core.telemetry.families import Sample
from core.telemetry.metrics.catalog import Entry
from core.telemetry.metrics.source import MetricSource


@core.hookimpl
def core_add_options(parser):
    parser.add("disk", [], "Folder on a disk whose free space is in the metrics.")


@core.hookimpl
def core_open_metric_source(options):
    paths = options.added.get("disk")
    return Disks(paths, options.metrics_interval_ms / 1000) if paths else None


FREE = Entry(
    "disk_free_bytes", "gauge", "Free space of a disk, in bytes", ("path",), together="first"
)


class Disks(MetricSource):
    """A thread reads the disks: one of them may hang, and `families` runs on the event loop."""

    catalog = {"Disks": [FREE]}

    def __init__(self, paths, interval_s):
        self._paths, self._interval_s = paths, interval_s
        self._free = {}
        self._ended = threading.Event()

    def start(self, loop):
        self._ended = threading.Event()
        threading.Thread(target=self._measure, args=(self._ended,), daemon=True).start()

    def stop(self):
        self._ended.set()

    def families(self):
        return [FREE.family(Sample({"path": path}, free) for path, free in self._free.items())]

    def _measure(self, ended):
        while True:
            self._free = {path: shutil.disk_usage(path).free for path in self._paths}
            if ended.wait(self._interval_s):
                return
