"""The sending side of a child alone: data that arrives during a send is not lost."""

import os
import socket
import threading

import pytest
from backend_python import arena, protocol, system
from backend_python.child.connection import Connection
from backend_python.child.messages import Parts


class Interrupted:
    """A socket whose first send calls `meanwhile` on another thread, and waits for it, before it returns."""

    def __init__(self, sock, meanwhile):
        self._sock = sock
        self._meanwhile = meanwhile

    def sendall(self, data):
        self._sock.sendall(data)
        meanwhile, self._meanwhile = self._meanwhile, lambda: None
        other = threading.Thread(target=meanwhile)
        other.start()
        other.join(10)
        assert not other.is_alive(), "who lets go waits for who sends"


@pytest.fixture
def ends():
    """A child's connection, its receiver, and what reads the messages at the other end."""
    files = [system.create_memory("test", 1 << 16) for _ in range(2)]
    ours, theirs = socket.socketpair()
    theirs.settimeout(10)
    receiver = arena.Receiver(files[0], writable=False)
    connection = Connection(ours, receiver, arena.Sender(files[1]))
    yield connection, receiver, protocol.reader(theirs)
    connection._sock = ours
    connection.close()
    for each in (ours, theirs):
        each.close()
    for fd in files:
        os.close(fd)


def messages(reader, count):
    """Receive at least `count` messages. Return the kind and the released numbers of each."""
    found = []
    while len(found) < count:
        assert reader.receive()
        while (frame := reader.next()) is not None:
            found.append((frame.kind, list(frame.released)))
    return found


def test_released_memory_is_reported_at_once(ends):
    connection, receiver, reader = ends
    receiver.released.append(7)

    connection.let_go()

    assert messages(reader, 1) == [(protocol.RELEASED, [7])]


@pytest.mark.parametrize("how", ["a message", "tensors", "what was held"])
def test_memory_released_during_another_message_is_reported_after_it(ends, how):
    connection, receiver, reader = ends

    def let_go():
        receiver.released.append(7)
        connection.let_go()

    if how == "what was held":
        connection._held.add(protocol.frame(protocol.EXECUTED, 1))
    connection._sock = Interrupted(connection._sock, let_go)
    if how == "a message":
        connection.send(protocol.EXECUTED, 1)
    elif how == "tensors":
        connection.send_tensors(protocol.EXECUTED, 1, b"", Parts(b"", [], 0))
    else:
        connection.flush()

    assert messages(reader, 2) == [(protocol.EXECUTED, []), (protocol.RELEASED, [7])]


def test_memory_released_before_the_response_is_reported_with_it(ends):
    connection, receiver, reader = ends
    connection.answering = True
    receiver.released.append(7)
    connection.let_go()
    connection.answering = False

    connection.send(protocol.EXECUTED, 1)
    connection.send(protocol.EXECUTED, 2)

    assert messages(reader, 2) == [(protocol.EXECUTED, [7]), (protocol.EXECUTED, [])]
