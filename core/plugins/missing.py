"""What to say of a backend that is not installed: where it is, that nobody has it, or what may be meant.

Only distributions of this project are named: a name made of what a configuration says could be anybody's.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

# Words of configurations → the distribution of this project that brings them.
DISTRIBUTIONS = {
    "fil": "backend-fil",
    "onnx": "backend-onnx",
    "onnxruntime": "backend-onnx",
    "openvino": "backend-openvino",
    "python": "backend-python",
    "pytorch": "backend-pytorch",
    "tensorrt": "backend-tensorrt",
    **dict.fromkeys(("identity", "repeat", "square"), "backend-testing"),
}

_ONNX = "convert the model to ONNX for backend 'onnxruntime'"
_UNSUPPORTED = {
    "caffe2": _ONNX,
    "dali": "do the same work in a Python model",
    "hugectr": _ONNX,
    "paddle": _ONNX,
    "tensorflow": _ONNX,
    "tensorrtllm": "",
    "tensorrt_llm": "",
}
"""Backends of Triton that this project has not, and what to do instead."""

_FOLDERS = {"vllm"}
"""Backends of Triton that are a folder with a model.py."""

_NEAR = 0.6


def hint(name: str, installed: Iterable[str]) -> str:
    """The end of the text for a backend that is not installed; "" if nothing is known of the name."""
    word = name.lower()
    if word in _UNSUPPORTED:
        advice = f"; {_UNSUPPORTED[word]}" if _UNSUPPORTED[word] else ""
        return f"; this project does not support it{advice}"
    if word in _FOLDERS:
        return (
            "; this project has no package for it: --backend-directory names the folder that holds "
            f"Triton's '{word}', which is a folder with a model.py"
        )
    if name in DISTRIBUTIONS:
        return f"; it is in the distribution {DISTRIBUTIONS[name]}"
    there = set(installed)
    near = difflib.get_close_matches(word, sorted({*there, *DISTRIBUTIONS}), 1, _NEAR)
    if not near:
        return ""
    place = "" if near[0] in there else f" It is in the distribution {DISTRIBUTIONS[near[0]]}"
    return f"; did you mean '{near[0]}'?{place}"
