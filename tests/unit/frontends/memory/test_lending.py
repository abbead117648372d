"""The socket that descriptors of memory come over: nobody on it keeps the event loop for himself."""

import asyncio
import errno
import logging
import os
import socket
from types import SimpleNamespace

from core.options import Options
from frontends.memory import frontend
from frontends.memory.connection import MemoryConnection
from frontends.memory.frontend import MemoryFrontend


async def test_one_that_asks_without_a_pause_lets_others_have_the_loop():
    client, server = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.setblocking(False)
    for _ in range(20):
        client.send(b"{}")
    running = asyncio.ensure_future(MemoryConnection(server, SimpleNamespace(), False).run())

    turns = 0
    client.setblocking(False)
    answers = 0
    while answers < 20:
        await asyncio.sleep(0)
        turns += 1
        while True:
            try:
                answers += bool(client.recv(4096))
            except BlockingIOError:
                break
    client.close()
    await running
    server.close()

    assert turns >= 20


class Full:
    """A listening socket of a process that has no descriptors left, until there are some."""

    def __init__(self, real):
        self.real = real
        self.asked = 0
        self.full = True

    def fileno(self):
        return self.real.fileno()

    def accept(self):
        self.asked += 1
        if self.full:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return self.real.accept()

    def close(self):
        self.real.close()


async def test_a_connection_that_cannot_be_taken_waits_and_fills_no_log(
    tmp_path, monkeypatch, caplog
):
    caplog.set_level(logging.ERROR, "core")
    timers = []
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "call_later", lambda after, *call: timers.append((after, call)))
    options = Options.defaults(
        shared_memory_socket=f"{tmp_path}/m",
        unix_socket_mode="0600",
        shared_memory_socket_uid=[],
        workers=1,
    )
    memory = MemoryFrontend(SimpleNamespace(options=options, shared=lambda factory: None))
    await memory.start()
    full = memory._listener.socket = Full(memory._listener.socket)
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.connect(f"{tmp_path}/m")

    for _ in range(20):
        await asyncio.sleep(0)

    assert full.asked == 1 and len(caplog.messages) == 1
    [(after, (accept_again, *arguments))] = timers
    assert after == frontend.PAUSE_S
    full.full = False
    accept_again(*arguments)
    while not memory._connections:
        await asyncio.sleep(0)
    client.close()
    monkeypatch.undo()
    await memory.stop(1)
