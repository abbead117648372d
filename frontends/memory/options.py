"""MemoryOptions: the flags of shared memory."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass

from core.errors import invalid
from core.options import Listener, Options, Section, group
from core.options.values import STRING, Form, read_int
from core.system import platform
from frontends.shared import unix_sockets
from frontends.shared.options import SharedOptions

_memory = group("Memory/Device Management")

_NUMBERS = Form("<integer>", read_int, lambda numbers, new: sorted({*numbers, new}))


@dataclass(kw_only=True)
class MemoryOptions(Section):
    # fmt: off
    shared_memory_socket: str = _memory(STRING, "",
        "Path of a Unix domain socket on which clients send descriptors of shared memory. It is released "
        "when they disconnect (docs/serve/shared-memory.md).")
    shared_memory_socket_uid: list[int] = _memory(_NUMBERS, [],
        "User that may use --shared-memory-socket, in addition to the server's user and root.")
    # fmt: on

    def check(self, options: Options) -> None:
        if self.shared_memory_socket and platform.PORTABLE:
            raise invalid(
                "--shared-memory-socket: only Linux has memory without a name that can be sealed; remove the "
                "option, and let clients register memory by name with --allow-client-shm=true"
            )

    def listeners(self, options: Options) -> Sequence[Listener]:
        if not self.shared_memory_socket:
            return ()
        return (
            Listener(
                "shared-memory",
                "shared memory",
                unix_sockets.with_prefix(self.shared_memory_socket),
                mode=SharedOptions.of(options).unix_socket_mode,
                kind=socket.SOCK_SEQPACKET,
                inference=False,
            ),
        )
