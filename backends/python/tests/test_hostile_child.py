"""Invalid data from a child: the server continues, ends the child and starts another."""

import struct

import numpy as np
import pytest

from core import CoreError

SENDS = """
    def execute(self, requests):
        code = requests[0].inputs()[0].as_numpy()[0].decode()
        if code:
            import socket
            from backend_python import protocol
            from backend_python.api import host
            connection = host._process._connection
            exec(code, {"connection": connection, "sock": connection._sock, "protocol": protocol,
                        "struct": __import__("struct"), "batch": requests[0]._key[0]})
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", np.array([b"fine"], object))]) for _ in requests]
"""
GARBAGE = {
    "no frame": "sock.sendall(b'\\xff' * 100)",
    "an unknown kind": "connection.send(200)",
    "the other direction": "connection.send(protocol.EXECUTE, batch)",
    "an unknown batch": "connection.send(68, 999, struct.pack('<QQQQ', 0, 0, 0, 0) + b'[null]')",
    "a short message": "connection.send(68, batch, b'x')",
    "no JSON": "connection.send(68, batch, struct.pack('<QQQQ', 0, 0, 0, 0) + b'{')",
    "JSON of another form": "connection.send(68, batch, struct.pack('<QQQQ', 0, 0, 0, 0) + b'7')",
    "too many answers": (
        "connection.send(68, batch, struct.pack('<QQQQ', 0, 0, 0, 0) + b'[null, null]')"
    ),
    "an unknown code of an error": (
        "connection.send(68, batch, struct.pack('<QQQQ', 0, 0, 0, 0) + b'[[[], [99, \"x\"], \"\"]]')"
    ),
    "a region outside of the arena": (
        "connection.send(68, batch, struct.pack('<QQQQ', 2**40, 64, 0, 0) + b'[null]')"
    ),
    "a tensor outside of its region": (
        "connection.send(68, batch, struct.pack('<QQQQ', 0, 64, 0, 0) "
        '+ b\'[[[["y", 11, [100], 400]], null, ""]]\')'
    ),
    "a tensor of another size than its shape": (
        "connection.send(68, batch, struct.pack('<QQQQ', 0, 64, 0, 0) "
        '+ b\'[[[["y", 11, [3], 64]], null, ""]]\')'
    ),
    "a region whose end overflows": (
        "connection.send(68, batch, struct.pack('<QQQQ', 2**64 - 64, 128, 0, 0) + b'[null]')"
    ),
    "a region of all memory": (
        "connection.send(68, batch, struct.pack('<QQQQ', 64, 2**64 - 1, 0, 0) + b'[null]')"
    ),
    "a tensor of a negative size": (
        "connection.send(68, batch, struct.pack('<QQQQ', 0, 64, 0, 0) "
        '+ b\'[[[["y", 11, [-1], -4]], null, ""]]\')'
    ),
    "a tensor whose shape overflows": (
        "connection.send(68, batch, struct.pack('<QQQQ', 0, 64, 0, 0) "
        '+ b\'[[[["y", 11, [4294967296, 4294967296], 0]], null, ""]]\')'
    ),
    "a tensor of no known datatype": (
        "connection.send(68, batch, struct.pack('<QQQQ', 0, 64, 0, 0) "
        '+ b\'[[[["y", 999, [1], 4]], null, ""]]\')'
    ),
    "more inline bytes than it sends": (
        "connection.send(68, batch, struct.pack('<QQQQ', 2**64 - 1, 2**63, 0, 0) + b'[null]')"
    ),
    "a frame that never ends": "sock.sendall(struct.pack('<I', 2**32 - 1) * 9)",
    "inline tensors that are not there": (
        "connection.send(68, batch, struct.pack('<QQQQ', 2**64 - 1, 64, 0, 0) + b'[null]')"
    ),
    "a region that it does not hold": "sock.sendall(protocol.frame(71, 0, b'', [4096]))",
    "a loan that it does not hold": "sock.sendall(protocol.frame(71, 0, b'', [2**63 + 1]))",
    "a tensor that is lent, where there is no GPU": (
        "connection.send(68, batch, struct.pack('<QQQQ', 2**64 - 1, 128, 0, 0) "
        '+ b\'[[[["y", 11, [1], 128, 1]], null, ""]]\' + bytes(128))'
    ),
    "a call of nothing": "connection.send(72, 1, b'[]')",
    "a log line of nothing": "connection.send(71, 0, b'[1]')",
    "the end of the channel": "sock.shutdown(2)",
}


@pytest.fixture
def text():
    return lambda value: {"x": np.array([value.encode()], object)}


@pytest.mark.parametrize("code", GARBAGE.values(), ids=GARBAGE)
async def test_nonsense_fails_the_batch_and_ends_the_child(serve, children, text, code):
    model = await serve(SENDS, datatype="BYTES")
    await model.ask(text(""))
    (first,) = children()

    with pytest.raises(CoreError) as error:
        await model.ask(text(code))

    assert error.value.message == "Stub process 'm_0' is not healthy."
    assert (await model.ask(text(""))).output("y").array.tolist() == [b"fine"]
    assert children() != [first]


async def test_strings_that_are_cut_short_fail_their_request_alone(serve, text):
    code = (
        "offset = connection._out.allocate(64)\n"
        "connection._out.memory[offset:offset + 5] = struct.pack('<I', 9) + b'x'\n"
        "connection.send(68, batch, struct.pack('<QQQQ', offset, 64, 0, 0) "
        '+ b\'[[[["y", 13, [1], 5]], null, ""]]\')'
    )
    model = await serve(SENDS, datatype="BYTES")

    answer = await model.ask(text(code))

    with pytest.raises(ValueError, match="ends within element 0"):
        _ = answer.output("y").array


def test_the_messages_of_this_file_are_packed_by_the_protocol():
    from backend_python import protocol

    assert protocol.DONE.format == struct.Struct("<QQQQ").format
    assert (protocol.EXECUTED, protocol.LOG, protocol.CALL) == (68, 71, 72)
