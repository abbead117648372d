"""Error texts for a missing backend: where to get it, similar names, alternatives.

The extras of core list the distributions of this project: the extra with the name of a backend requires its
distribution. No other distribution is suggested: a name that is built from a configuration could belong to a
stranger.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

from core.plugins.extras import extras, install_hint, is_installed

PROCESS_HOST = "process-host"
"""The extra that brings a process host."""
FORMATS = "formats"
"""The extra that brings every distribution that declares formats."""

_ONNX = "convert the model to ONNX"
_UNSUPPORTED = {
    "caffe2": _ONNX,
    "hugectr": _ONNX,
    "tensorrtllm": "",
    "tensorrt_llm": "",
}
"""Backends of Triton that this project has not, and what to do instead."""


def hint(name: str, installed: Iterable[str]) -> str:
    """Return the end of the error text for a missing backend: what to do, a similar name, or ""."""
    word = name.lower()
    if word in _UNSUPPORTED:
        advice = f"; {_UNSUPPORTED[word]}" if _UNSUPPORTED[word] else ""
        return f"; this project does not support it{advice}"
    ours = distributions()
    if name in ours:
        return f"; it is in the distribution {ours[name]}"
    there = set(installed)
    known = there.union(each for each in ours if each != PROCESS_HOST)
    near = difflib.get_close_matches(word, sorted(known), 1)
    if not near:
        return ""
    place = "" if near[0] in there else f" It is in the distribution {ours[near[0]]}"
    return f"; did you mean '{near[0]}'?{place}"


def advice(names: Iterable[str]) -> str:
    """Return the end of the error text for unknown files or platforms: what to install; "" if all is.

    names   such as model.onnx, or onnxruntime_onnx
    """
    ours = _backend_extras()
    absent = [each for each in ours.get(FORMATS, ()) if not is_installed(each)]
    parts = {part for name in names for part in re.split(r"[._/]", name.lower())}
    for extra, needs in sorted(ours.items()):
        if extra in parts and needs[0] in absent:
            return install_hint(extra)
    return f"; not installed are {', '.join(absent)}{install_hint(FORMATS)}" if absent else ""


def distributions() -> Mapping[str, str]:
    """Return name of a backend, or PROCESS_HOST → its distribution of this project."""
    # Extras have no underscores, names of backends have no hyphens.
    return {
        extra if extra == PROCESS_HOST else extra.replace("-", "_"): needs[0]
        for extra, needs in _backend_extras().items()
        if extra != FORMATS
    }


def _backend_extras() -> Mapping[str, list[str]]:
    """Return the extras of core with a backend, and FORMATS: extra → its distributions."""
    return {
        extra: needs
        for extra, needs in extras().items()
        if extra == FORMATS or (len(needs) == 1 and needs[0].startswith("backend-"))
    }
