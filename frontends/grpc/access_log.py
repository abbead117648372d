"""Entries of the access log for calls of gRPC (--access-log).

A call has one line, and each request of a stream of inference has one of its own (services/stream.py). Only
the names at the start of a message are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from core.errors import CoreError, Kind
from core.tensor import Buffer
from frontends.grpc.call import GrpcCall
from frontends.grpc.status import Code, code_of
from frontends.shared.access_log import AccessLogEntry

# Of each method the numbers of the fields with model, version and id; 0 for none (grpc_service.proto).
_FIELDS = {
    "ModelInfer": (1, 2, 3),
    "ModelStreamInfer": (1, 2, 3),
    "ModelReady": (1, 2, 0),
    "ModelMetadata": (1, 2, 0),
    "ModelConfig": (1, 2, 0),
    "ModelStatistics": (1, 2, 0),
    "RepositoryModelLoad": (2, 0, 0),
    "RepositoryModelUnload": (2, 0, 0),
    "TraceSetting": (2, 0, 0),
}
_FAMILY = re.compile("^(?:ipv[46]:|unix:.*)")  # before an address, in gRPC's form of a peer


def client_of(peer: str) -> str:
    """Return address and port of a peer such as "ipv4:127.0.0.1:40000"; "" for a Unix domain socket."""
    return _FAMILY.sub("", peer)


def entry_of(call: GrpcCall, path: str) -> AccessLogEntry:
    """Return a new entry with the client's address, the path, and the call's trace id, if it has one."""
    entry = AccessLogEntry("grpc", client_of(call.peer), path)
    if isinstance(parent := call.value("traceparent"), str):
        entry.belong(parent)
    return entry


def entry_for(call: GrpcCall, path: str, request: bytes) -> AccessLogEntry:
    """Return an entry as `entry_of` does, with the caller if known, and what one message says.

    That is its size, and the model, version and id in it where the method has them; "" if not found.
    """
    entry = entry_of(call, path)
    if call.active is not None:
        entry.come_from(call.active.caller)
    entry.bytes_in = len(request)
    entry.model, entry.version, entry.id = names_in(path, request)
    return entry


def names_in(path: str, request: bytes) -> tuple[str, str, str]:
    """Return model, version and id in a message, where its method has them; "" if not found."""
    if (fields := _FIELDS.get(path.rpartition("/")[2])) is None:
        return "", "", ""
    found = texts(request, max(fields))
    model, version, id = (found.get(number, "") for number in fields)
    return model, version, id


def code_of_end(call: GrpcCall, error: CoreError) -> int:
    """Return the status code for the access log of a call, or a request in it, that ended with an error.

    It is that of the error, but DEADLINE_EXCEEDED for a cancellation after the call's deadline.
    """
    if error.kind is Kind.CANCELLED and call.expired:
        return Code.DEADLINE_EXCEEDED
    return code_of(error)


def texts(message: Buffer, most: int) -> Mapping[int, str]:
    """Return number → text of the fields 1 to `most` at the start of a message, at most 4096 bytes of each.

    Every writer puts fields in the order of their numbers, and these come first. The search ends at the first
    field that has another number or is no text.
    """
    found: dict[int, str] = {}
    at, end = 0, len(message)
    while at + 1 < end:
        key = message[at]
        if key & 7 != 2 or not 0 < key >> 3 <= most:
            break
        size, shift, at = 0, 0, at + 1
        while at < end and shift < 35:
            byte = message[at]
            at += 1
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        if at + size > end:
            break
        found[key >> 3] = bytes(message[at : at + min(size, 4096)]).decode(errors="replace")
        at += size
    return found
