"""Account: what each loaded version takes, and what the next load of a version will need.

Measured ─► [Account] ─► the budget, statistics, metrics, the operation model_memory.account
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from core.backend import MemoryUsage
from core.config import ModelConfig
from core.governing import ModelVersion
from core_memory_budget.measuring import Measured
from core_memory_budget.options import ModelMemory
from core_memory_budget.sizes import HOST, Bytes, added

Source = Literal["backend", "measured", "estimate"]

FILES_FACTOR = 1.1  # memory of a loaded model for each byte of its files
PEAK_FACTOR = 3.0  # the same while it loads: its files are read, parsed and copied


@dataclass(frozen=True)
class Need:
    """What a load takes, by device: at its highest moment, and from its end on."""

    peak: Bytes
    kept: Bytes


@dataclass
class Entry:
    """One version that holds memory, or has it reserved. Loop thread.

    key, number   of the model and version
    bytes         what counts against the budget: the peak while it loads, then what it keeps
    source        where the numbers come from
    exact         whether all of `bytes` is measured or reported, and nothing else was loaded meanwhile
    known         devices of which that is so; those of the others are estimates
    version       None while its memory is only reserved
    in_processes  whether it has, or once had, processes of its own, whose memory grows
    own           bytes of `bytes` on the host that are in this process, not in processes of its own
    """

    key: str
    number: int
    bytes: Bytes
    settings: ModelMemory = field(default_factory=ModelMemory)
    source: Source = "estimate"
    exact: bool = False
    known: frozenset[str] = frozenset()
    version: ModelVersion | None = None
    state: Literal["reserved", "loading", "loaded", "unloading"] = "reserved"
    loaded_at: float = 0.0
    load_s: float = 0.0
    own: int = 0
    in_processes: bool = False


# What is known before the first load: a stamp that no files have
_NOTHING: tuple[str, Need, bool] = ("", Need({}, {}), False)


class Account:
    """All entries of one process. Loop thread."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        # Of earlier loads: stamp of the files, what is known, whether that is all of it
        self._known: dict[tuple[str, int], tuple[str, Need, bool]] = {}

    def used(self) -> Bytes:
        """Return the bytes of all entries, by device."""
        return added(entry.bytes for entry in self.entries)

    def of(self, version: ModelVersion) -> Entry | None:
        """Return the entry of a version; None if it has none."""
        return next((entry for entry in self.entries if entry.version is version), None)

    def has(self, key: str, number: int) -> bool:
        """Return whether any generation of this version has an entry that stays."""
        return any(
            (entry.key, entry.number) == (key, number) and entry.state != "unloading"
            for entry in self.entries
        )

    def drop(self, entry: Entry) -> None:
        """Remove an entry, if it is there."""
        if entry in self.entries:
            self.entries.remove(entry)

    def learn(self, version: ModelVersion, entry: Entry, peak: Bytes) -> None:
        """Remember what a load took, for the next one of the same files.

        What an earlier load of these files has told of other devices stays, unless this load tells all.
        peak   device → bytes at the highest moment; empty if it is not known
        """
        if not entry.known:
            return
        stamp, is_all = _stamp(version), entry.exact
        kept = {device: entry.bytes.get(device, 0) for device in entry.known}
        old_stamp, old, old_is_all = self._known.get((version.key, version.version), _NOTHING)
        if not is_all and stamp == old_stamp:
            kept, peak, is_all = {**old.kept, **kept}, {**old.peak, **peak}, old_is_all
        need = Need({device: max(size, peak.get(device, 0)) for device, size in kept.items()}, kept)
        self._known[version.key, version.version] = (stamp, need, is_all)

    def need(self, version: ModelVersion, settings: ModelMemory) -> Need:
        """Return what a load of the version will take: as last time, else the parameter, else by its files.

        Blocks shortly: it looks at the sizes of the files.
        """
        stamp, known, is_all = self._known.get((version.key, version.version), _NOTHING)
        if stamp != _stamp(version):
            return _guess(version, settings)
        if is_all:
            return known
        guess = _guess(version, settings)
        return Need({**guess.peak, **known.peak}, {**guess.kept, **known.kept})


def _guess(version: ModelVersion, settings: ModelMemory) -> Need:
    """Return what a load of the version may take: its parameter, else by its files."""
    if settings.estimate:
        return Need(dict(settings.estimate), dict(settings.estimate))
    size = file_bytes(version.path)
    kept = int(size * FILES_FACTOR)
    copies = _copies_on_gpus(version.config)
    return Need(
        {HOST: int(size * PEAK_FACTOR), **{gpu: kept * count for gpu, count in copies.items()}},
        # Instances may share what they load: a guess must not refuse a model that fits.
        {HOST: kept, **dict.fromkeys(copies, kept)},
    )


def _copies_on_gpus(config: ModelConfig) -> dict[str, int]:
    """Return gpu → instances that a complete configuration places on it."""
    return Counter(
        f"gpu{number}"
        for group in config.instance_group
        if group.kind == group.KIND_GPU
        for number in group.gpus
        for _ in range(group.count)
    )


def _stamp(version: ModelVersion) -> str:
    """Return what changes when the files of a version do."""
    return f"{version.source.versions.get(version.version)} {version.source.shared}"


def file_bytes(folder: Path) -> int:
    """Return the size of all files below a folder; 0 for a folder that is absent."""
    try:
        return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
    except OSError:
        return 0


def of_backend(usage: Iterable[Mapping[str, object]]) -> Bytes:
    """Return device → bytes of what a backend reports (entries of `model_stats`)."""
    found: Bytes = {}
    for each in usage:
        device = f"gpu{each['id']}" if each["type"] == "GPU" else HOST
        found[device] = found.get(device, 0) + int(str(each["byte_size"]))
    return found


class Found(NamedTuple):
    """What a loaded version takes: the fields of its Entry with the same names."""

    bytes: Bytes
    source: Source
    exact: bool
    known: frozenset[str]


def found_out(need: Need, measured: Measured, reported: Bytes) -> Found:
    """Return what a loaded version takes, and how well that is known.

    reported   by the backend; takes precedence on its devices. The others, such as the GPU of a backend that
               reports only the host, are measured
    Without a usable measurement of a device, its estimate stays; processes of the model are known.
    """
    found = _measured_or_needed(need, measured)
    if not reported:
        return found
    return Found(
        {**found.bytes, **reported},
        "backend",
        found.exact or found.bytes.keys() <= reported.keys(),
        found.known | reported.keys(),
    )


def _measured_or_needed(need: Need, measured: Measured) -> Found:
    if measured.exact:
        guessed = {device: need.kept[device] for device in need.kept.keys() - measured.known}
        exact = not guessed and not measured.unknown
        known = frozenset(measured.known)
        return Found({**guessed, **measured.kept}, "measured", exact, known)
    if measured.processes:
        found = {**need.kept, HOST: measured.processes}
        return Found(found, "measured", need.kept.keys() <= {HOST}, frozenset({HOST}))
    return Found(dict(need.kept), "estimate", False, frozenset())


def shown(entry: Entry) -> list[MemoryUsage]:
    """Return what statistics show of a loaded version: the bytes that are no estimate."""
    return [usage(device, size) for device, size in entry.bytes.items() if device in entry.known]


def usage(device: str, size: int) -> MemoryUsage:
    """Return bytes of a device in the form of statistics."""
    return (
        MemoryUsage("CPU", 0, size) if device == HOST else MemoryUsage("GPU", int(device[3:]), size)
    )
