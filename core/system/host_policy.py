"""Host policies: bind the threads of an instance to cores of the machine.

--host-policy=<name>,<setting>=<value> ─► [HostPolicies] ─► HostPolicy ─► the instance's thread, or the child
process of a backend that runs its models in child processes. Names and settings are those of Triton's
--host-policy and of ModelInstanceGroup.host_policy in its model_config.proto.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from core.errors import internal, invalid
from core.system import platform

logger = logging.getLogger("core")

NUMA_NODE = "numa-node"
CPU_CORES = "cpu-cores"


@dataclass(frozen=True)
class HostPolicy:
    """The settings of one policy. Any thread.

    name      name in the configuration, or "cpu", "gpu_<id>", "model" by the kind of the instance
    settings  settings of --host-policy, by name: "numa-node", "cpu-cores"; most policies have none
    cores     cores that `bind` binds threads to; empty if it leaves them as they are
    """

    name: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    cores: frozenset[int] = frozenset()

    def bind(self, thread: int = 0) -> None:
        """Bind a thread to the policy's cores. Do nothing if the policy has no cores.

        thread   id of the thread, or of a process for its main thread; 0 for the calling thread
        Threads that it starts later inherit the binding. Raises CoreError(INTERNAL) if the system refuses,
        and ProcessLookupError if there is no such thread.
        """
        if not self.cores:
            return
        try:
            platform.bind(thread, self.cores)
        except ProcessLookupError:
            raise
        except OSError as error:
            raise internal(
                f"host policy '{self.name}': a thread cannot be bound to the cores "
                f"{_text(self.cores)}: {error.strerror}"
            ) from error

    def tell_loop(self, instance: str) -> None:
        """If the policy has cores, warn that it does not bind `instance`, which runs on the event loop."""
        if self.cores:
            logger.warning(
                "host policy '%s' has no effect on instance '%s': it executes on the event loop",
                self.name,
                instance,
            )


class HostPolicies:
    """The policies of --host-policy. Any thread.

    given     name → setting → value
    allowed   cores that this process may use; None asks the system
    nodes     folder of the NUMA nodes in Linux
    Raises CoreError(INVALID) for an unknown setting, an invalid value, an unknown node, or cores of which
    this process may use none. Logs a warning, and omits cores, if this process may use only some of them.
    """

    def __init__(
        self,
        given: Mapping[str, Mapping[str, str]],
        allowed: frozenset[int] | None = None,
        nodes: Path = platform.SYS / "devices/system/node",
    ):
        self._found = {
            name: HostPolicy(name, dict(settings), _cores_of(name, settings, allowed, nodes))
            for name, settings in given.items()
        }

    def named(self, name: str) -> HostPolicy:
        """Return the policy of that name; a policy without settings if --host-policy does not name it."""
        return self._found.get(name) or HostPolicy(name)


def _cores_of(
    name: str, settings: Mapping[str, str], allowed: frozenset[int] | None, nodes: Path
) -> frozenset[int]:
    """Return the usable cores of `cpu-cores`, else of the NUMA node, else none. Raises CoreError(INVALID)."""
    for key in settings:
        if key not in (NUMA_NODE, CPU_CORES):
            raise invalid(
                f"Unsupported host policy setting '{key}' is specified, "
                f"supported settings are '{NUMA_NODE}', '{CPU_CORES}'"
            )
    wanted: frozenset[int] = frozenset()
    option = ""
    if node := settings.get(NUMA_NODE):
        option = f"--host-policy={name},{NUMA_NODE}={node}"
        wanted = _cores_of_node(node, option, nodes)
    if ranges := settings.get(CPU_CORES):
        option = f"--host-policy={name},{CPU_CORES}={ranges}"
        wanted = _cores_in(ranges, option)
    if not wanted:
        return wanted
    if allowed is None and platform.PORTABLE:
        raise invalid(f"{option}: only Linux binds threads to cores; remove the option")
    usable = platform.cores() if allowed is None else allowed
    if not wanted & usable:
        raise invalid(
            f"{option}: none of the cores {_text(wanted)} is there for this process, it may use "
            f"{_text(usable)}"
        )
    if wanted - usable:
        logger.warning("%s: this process may not use the cores %s", option, _text(wanted - usable))
    return wanted & usable


def _cores_in(ranges: str, option: str) -> frozenset[int]:
    """Return the cores of `<lower>-<upper>[,…]`. Raises CoreError(INVALID) for another form."""
    found: set[int] = set()
    for part in ranges.split(","):
        match = re.fullmatch(r"([0-9]{1,6})-([0-9]{1,6})", part)
        if match is None:
            raise invalid(
                f"{option}: host policy setting '{CPU_CORES}' format is "
                f"'<lower_cpu_core_id>-<upper_cpu_core_id>'. Got {part}"
            )
        lower, upper = int(match[1]), int(match[2])
        if lower > upper:
            raise invalid(f"{option}: the first core of {part} must not be above the last")
        found.update(range(lower, upper + 1))
    return frozenset(found)


def _cores_of_node(node: str, option: str, nodes: Path) -> frozenset[int]:
    if not (node.isascii() and node.isdigit()):
        raise invalid(f"{option}: Parsing '{NUMA_NODE}' value: Can't parse '{node}' to integer")
    try:
        text = (nodes / f"node{int(node)}" / "cpulist").read_text()
    except OSError:
        numbers = sorted(int(each.name[4:]) for each in nodes.glob("node[0-9]*"))
        there = f"it has {', '.join(map(str, numbers))}" if numbers else "it tells of none"
        raise invalid(f"{option}: this machine has no NUMA node {int(node)}, {there}") from None
    ranges = [each if "-" in each else f"{each}-{each}" for each in text.strip().split(",") if each]
    if not ranges:
        raise invalid(f"{option}: NUMA node {int(node)} has memory, but no cores")
    return _cores_in(",".join(ranges), option)


def _text(cores: frozenset[int]) -> str:
    """Return the cores as ranges: "0-3,8"."""
    parts: list[list[int]] = []
    for core in sorted(cores):
        if parts and parts[-1][1] == core - 1:
            parts[-1][1] = core
        else:
            parts.append([core, core])
    return ",".join(f"{a}-{b}" if b > a else f"{a}" for a, b in parts)
