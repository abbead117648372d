"""The shared memory extensions: regions of system memory, and of GPU memory."""

from __future__ import annotations

import base64
from typing import Any

from core.errors import invalid
from core.server import InferenceServer
from frontends.http.codec.json_text import read_control
from frontends.http.codec.parameters import natural, typed
from frontends.http.message import HttpRequest, HttpResponse
from frontends.http.services.metadata import json_answer
from frontends.shared.memory import MemoryControl
from frontends.shared.memory.cuda import HANDLE_BYTES


async def status(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the status of the region that the path names, or of all regions of that kind of memory.

    Raises CoreError(NOT_FOUND) for an unknown name.
    """
    memory = MemoryControl.of(server)
    look = memory.status if call.captures["kind"] == "system" else memory.cuda_status
    return json_answer([region._asdict() for region in look(_name(call))])


async def register(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Register a region of system or GPU memory: the path has kind and name, the body says where it is."""
    MemoryControl.of(server).check_allowed()
    name = _name(call)
    if not name:
        raise invalid(
            f"'region name' is necessary to register {call.captures['kind']} shared memory region"
        )
    document = read_control(call.body) if len(call.body) else {}
    if type(document) is not dict:
        document = {}
    if call.captures["kind"] == "cuda":
        await MemoryControl.of(server).register_cuda(name, *_read_cuda(document))
    else:
        await MemoryControl.of(server).register(name, *_read_system(document))
    return HttpResponse()


async def unregister(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Unregister the region that the path names, or all regions of the kind in the path."""
    if call.captures["kind"] == "system":
        await MemoryControl.of(server).unregister(_name(call))
    else:
        await MemoryControl.of(server).unregister_cuda(_name(call))
    return HttpResponse()


def _name(call: HttpRequest) -> str:
    """Return the name of the region in the path, "" for none."""
    return call.captures["region"] or ""


def _read_system(document: dict[str, Any]) -> tuple[str, int, int]:
    key = _member(document, "key")
    if type(key) is not str:
        raise typed("key", "string")
    offset = natural("offset", document.get("offset", 0))
    return key, offset, natural("byte_size", _member(document, "byte_size"))


def _read_cuda(document: dict[str, Any]) -> tuple[bytes, int, int]:
    """Return (handle, device, size in bytes) of GPU memory; the device is 0 if the document names none.

    Raises CoreError(INVALID) for a missing or malformed member.
    """
    handle = _member(document, "raw_handle")
    try:
        raw = base64.b64decode(handle["b64"], validate=True)
    except (KeyError, TypeError, ValueError):
        raw = b""
    if len(raw) != HANDLE_BYTES:
        raise invalid("'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t")
    device = natural("device_id", document.get("device_id", 0))
    return raw, device, natural("byte_size", _member(document, "byte_size"))


def _member(document: dict[str, Any], member: str) -> Any:
    if member not in document:
        raise invalid(f"Shared memory register request has no '{member}' field")
    return document[member]
