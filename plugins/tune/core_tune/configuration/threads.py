"""ThreadParameters: how the configuration of a model says how many threads an execution has.

A backend declares it by an entry point of the group core.threads; nothing is imported:

    [project.entry-points."core.threads"]
    onnxruntime = "intra_op_thread_count"

The name is that of the backend in configurations, the value that of the parameter in config.pbtxt. A word may
follow it: `:total` if all instances share the threads, `:process` if a process takes the number only once, so
that another one needs a new process. Names in brackets are parameters that get the number of instances:
`INFERENCE_NUM_THREADS:total [NUM_STREAMS]`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.errors import invalid
from core.plugins.installed import installed
from core_tune.settings import Settings

GROUP = "core.threads"
_VALUE = re.compile(r"(\w+)\s*(?::\s*(total|process))?\s*(?:\[([\w\s,]*)\])?")


@dataclass(frozen=True)
class ThreadParameters:
    """Names of parameters in config.pbtxt.

    threads    of an execution, or of all instances if `total`
    once       a process takes the number only once
    streams    get the number of instances
    """

    threads: str
    total: bool = False
    once: bool = False
    streams: tuple[str, ...] = ()

    def values(self, settings: Settings) -> dict[str, str]:
        """Return the parameters of these settings; {} if the backend chooses."""
        if not settings.threads:
            return {}
        count = settings.threads * (settings.instances if self.total else 1)
        return {
            self.threads: str(count),
            **{each: str(settings.instances) for each in self.streams},
        }

    def threads_of(self, config: Mapping[str, Any], instances: int) -> int:
        """Return the threads of an execution in a configuration in JSON; 0 if the backend chooses."""
        found = config.get("parameters", {}).get(self.threads, {}).get("string_value", "").strip()
        if not found.isdecimal():
            return 0
        return max(int(found) // instances, 1) if self.total and int(found) else int(found)


def thread_parameters(backend: str) -> ThreadParameters | None:
    """Return what a backend declares; None if no installed distribution does.

    Raises CoreError if the declaration is wrong.
    """
    found = installed(GROUP).get(backend)
    if found is None:
        return None
    value = found.entries[0].value
    if (match := _VALUE.fullmatch(value.strip())) is None:
        raise invalid(
            f"the entry point '{backend}' of group {GROUP} of {found.distribution} is '{value}'; expected "
            "the name of a parameter, such as 'threads', 'threads:process' or 'threads:total [streams]'"
        )
    name, word, streams = match.groups(default="")
    names = tuple(re.findall(r"\w+", streams))
    return ThreadParameters(name, word == "total", word == "process", names)
