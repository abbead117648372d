"""The shared memory extensions: regions of system memory, and of GPU memory."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from core.errors import CoreError, invalid
from core.server import InferenceServer
from frontends.http.codec.json_text import read_control
from frontends.http.codec.parameters import natural, typed
from frontends.http.message import HttpRequest, HttpResponse
from frontends.http.services.metadata import json_answer
from frontends.shared.memory import MemoryControl

_HANDLE_BYTES = 64  # of a cudaIpcMemHandle_t


async def status(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return all regions, or the one that the path names."""
    memory = MemoryControl.of(server)
    look = memory.status if call.captures["kind"] == "system" else memory.cuda_status
    return json_answer([region._asdict() for region in look(_name(call))])


async def register(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Register the region that the body describes."""
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
    """Unregister all regions, or the one that the path names."""
    if call.captures["kind"] == "system":
        await MemoryControl.of(server).unregister(_name(call))
    else:
        await MemoryControl.of(server).unregister_cuda(_name(call))
    return HttpResponse()


def _name(call: HttpRequest) -> str:
    """Return the name of the region in the path, "" for none."""
    return call.captures["region"] or ""


def _read_system(document: dict[str, Any]) -> tuple[str, int, int]:
    """Return key, offset and size of a region."""
    key = _member(document, "key")
    if type(key) is not str:
        raise typed("key", "string")
    offset = natural("offset", document.get("offset", 0))
    return key, offset, natural("byte_size", _member(document, "byte_size"))


def _read_cuda(document: dict[str, Any]) -> tuple[bytes, int, int]:
    """Return handle, device and size of GPU memory; the device is 0 if the document names none."""
    handle = _member(document, "raw_handle")
    text = handle.get("b64") if type(handle) is dict else None
    if type(text) is not str:
        raise _no_handle()
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _no_handle() from None
    if len(raw) != _HANDLE_BYTES:
        raise _no_handle()
    device = natural("device_id", document.get("device_id", 0))
    return raw, device, natural("byte_size", _member(document, "byte_size"))


def _no_handle() -> CoreError:
    return invalid("'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t")


def _member(document: dict[str, Any], member: str) -> Any:
    if member not in document:
        raise invalid(f"Shared memory register request has no '{member}' field")
    return document[member]
