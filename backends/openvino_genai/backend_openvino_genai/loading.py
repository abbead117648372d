"""What both engines do to load a model: check its device, name its threads, shorten errors."""

from __future__ import annotations

import re
from typing import Any

import openvino

from backend_openvino_genai.settings import Settings
from core.errors import invalid

# The first array of a tensor prepares OpenVINO's access to numpy. Two threads that do so at once wait for
# each other, one of them with the interpreter's lock: the process stands still. An import has one thread.
_ = openvino.Tensor(openvino.Type.i64, openvino.Shape([1])).data

_PLACES = re.compile(r"^(Exception from \S+\n?|Check '.*' failed at \S+\n?|\[[\d:]+\] \S+: )", re.M)


def reason(error: Exception) -> str:
    """Return the text of an exception of OpenVINO without the places in its source."""
    lines = _PLACES.sub("", str(error)).split("\n")
    return " ".join(each.strip() for each in lines if each.strip()) or repr(error)


def check_device(device: str) -> None:
    """Raise CoreError(INVALID) for a device that is not there. Its number, as in "GPU.0", is not checked."""
    known = openvino.Core().available_devices
    if device.partition(".")[0] not in {each.partition(".")[0] for each in known}:
        raise invalid(f"parameter 'device' is '{device}', this machine has {', '.join(known)}")


def thread_properties(settings: Settings) -> dict[str, Any]:
    """Return OpenVINO's properties for the number of threads; {} if OpenVINO chooses it."""
    return {"INFERENCE_NUM_THREADS": settings.threads} if settings.threads else {}
