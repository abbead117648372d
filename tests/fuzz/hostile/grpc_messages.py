"""Hostile gRPC: messages with fields that hurt, bytes that are no message, and frames of HTTP/2."""

import struct

import numpy as np
import tritonclient.grpc.service_pb2 as pb
from google.protobuf.descriptor import FieldDescriptor as Field

from .mutate import NUMBERS, TEXTS, damaged

_V2 = "/inference.GRPCInferenceService/"
INFER = _V2 + "ModelInfer"
STREAM = _V2 + "ModelStreamInfer"
_TEXTS = [text for text in TEXTS if text.isascii() or text == "é"]
_RANGES = {
    Field.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    Field.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    Field.CPPTYPE_UINT32: (0, 2**32 - 1),
    Field.CPPTYPE_UINT64: (0, 2**64 - 1),
}


def good():
    """A request to `plain`, which answers twice its input."""
    message = pb.ModelInferRequest(
        model_name="plain", raw_input_contents=[np.float32(21).tobytes()]
    )
    message.inputs.add(name="INPUT0", datatype="FP32", shape=[1])
    return message


def _infer(random):
    message = good()
    message.model_name = random.choice(
        ("plain",) * 6 + ("add_sub", "params_echo", "absent", *_TEXTS[:6])
    )
    kind = random.randrange(5)
    if kind == 0:
        message.raw_input_contents[0] = random.randbytes(random.choice((0, 3, 5, 8, 64)))
    elif kind == 1:
        del message.raw_input_contents[:]
        message.inputs[0].contents.fp32_contents.extend([1.0] * random.choice((0, 1, 2, 50)))
    elif kind == 2:
        message.inputs[0].datatype = "BYTES"
        message.raw_input_contents[0] = (
            struct.pack("<I", random.choice((0, 1, 2**31, 2**32 - 1))) + b"x"
        )
    elif kind == 3:
        for _ in range(random.choice((1, 2, 200))):
            output = message.outputs.add(name=random.choice(("OUTPUT0", "x")))
            output.parameters["classification"].int64_param = _number(random, -(2**63), 2**63 - 1)
    else:
        message.inputs[0].parameters["shared_memory_region"].string_param = random.choice(_TEXTS)
        message.inputs[0].parameters["shared_memory_byte_size"].int64_param = 2**62
    return message


_OTHERS = {
    "ServerLive": lambda: pb.ServerLiveRequest(),
    "ModelReady": lambda: pb.ModelReadyRequest(name="plain"),
    "ServerMetadata": lambda: pb.ServerMetadataRequest(),
    "ModelMetadata": lambda: pb.ModelMetadataRequest(name="plain"),
    "ModelConfig": lambda: pb.ModelConfigRequest(name="plain"),
    "ModelStatistics": lambda: pb.ModelStatisticsRequest(name="plain"),
    "RepositoryIndex": lambda: pb.RepositoryIndexRequest(ready=True),
    "RepositoryModelLoad": lambda: pb.RepositoryModelLoadRequest(model_name="absent"),
    "RepositoryModelUnload": lambda: pb.RepositoryModelUnloadRequest(model_name="absent"),
    "SystemSharedMemoryStatus": lambda: pb.SystemSharedMemoryStatusRequest(name="r"),
    "SystemSharedMemoryRegister": lambda: pb.SystemSharedMemoryRegisterRequest(
        name="r", key="/absent", byte_size=64
    ),
    "SystemSharedMemoryUnregister": lambda: pb.SystemSharedMemoryUnregisterRequest(name="r"),
    "CudaSharedMemoryRegister": lambda: pb.CudaSharedMemoryRegisterRequest(name="r", byte_size=64),
    "TraceSetting": lambda: pb.TraceSettingRequest(model_name="plain"),
}


def call(random):
    """(method, bytes) of a unary call."""
    if random.random() < 0.75:
        method, message = INFER, _infer(random)
    else:
        name = random.choice(list(_OTHERS))
        method, message = _V2 + name, _OTHERS[name]()
    for _ in range(random.choice((0, 1, 1, 2, 5))):
        spoil(random, message)
    if message.DESCRIPTOR.name.startswith("RepositoryModel") and message.model_name == "plain":
        message.model_name = "absent"  # the good requests need it
    data = message.SerializeToString()
    return method, damaged(random, data) if random.random() < 0.3 else data


def stream(random):
    """The messages of one stream."""
    return [call(random)[1] for _ in range(random.choice((0, 1, 3, 10)))]


def spoil(random, message):
    """Change one field somewhere in a message."""
    fields = message.DESCRIPTOR.fields
    if not fields:
        return
    field = random.choice(fields)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        _spoil_map(random, getattr(message, field.name), field)
    elif (
        field.is_repeated if hasattr(field, "is_repeated") else field.label == Field.LABEL_REPEATED
    ):
        _spoil_list(random, getattr(message, field.name), field)
    elif field.message_type is not None:
        spoil(random, getattr(message, field.name))
    else:
        setattr(message, field.name, _scalar(random, field))


def _spoil_list(random, values, field):
    kind = random.randrange(4)
    if kind == 0 and len(values):
        del values[random.randrange(len(values))]
    elif kind == 1 and len(values):
        times = random.choice((1, 2, 100))
        for _ in range(times):
            if field.message_type is None:
                values.append(values[0])
            else:
                values.add().CopyFrom(values[0])
    elif field.message_type is None:
        values.extend(_scalar(random, field) for _ in range(random.choice((1, 2, 101))))
    else:
        spoil(random, random.choice(values) if len(values) and kind == 2 else values.add())


def _spoil_map(random, values, field):
    key = random.choice(
        [*_TEXTS, "sequence_id", "priority", "config", "file:../x", "trace_rate", "timeout"]
    )
    value = field.message_type.fields_by_name["value"]
    if value.message_type is None:
        values[key] = _scalar(random, value)
    else:
        spoil(random, values[key])


def _scalar(random, field):
    if field.cpp_type in _RANGES:
        return _number(random, *_RANGES[field.cpp_type])
    if field.cpp_type == Field.CPPTYPE_BOOL:
        return random.random() < 0.5
    if field.cpp_type in (Field.CPPTYPE_FLOAT, Field.CPPTYPE_DOUBLE):
        return random.choice((0.0, -1.0, float("nan"), float("inf"), 1e30))
    if field.type == Field.TYPE_BYTES:
        return random.randbytes(random.choice((0, 1, 4, 64)))
    return random.choice(_TEXTS)


def _number(random, least, most):
    return random.choice(
        [each for each in NUMBERS if isinstance(each, int) and least <= each <= most]
    )


# frames -------------------------------------------------------------------------------------

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream_id, payload):
    """One frame of HTTP/2."""
    size = len(payload)
    return struct.pack(">BHBBI", size >> 16, size & 0xFFFF, kind, flags, stream_id) + payload


def _literal(name, value):
    """A header without Huffman and without an entry in the table."""
    return b"\0" + b"".join(
        (b"%c" % len(text) if len(text) < 127 else b"\x7f" + _integer(len(text) - 127)) + text
        for text in (name, value)
    )


def _integer(value):
    found = b""
    while value >= 128:
        found += b"%c" % (value % 128 + 128)
        value //= 128
    return found + b"%c" % value


def connection(random):
    """Return all bytes of a client on a separate connection: one call with an error."""
    data = good().SerializeToString()
    headers = [
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", INFER.encode()),
        (b":authority", b"x"),
        (b"content-type", random.choice((b"application/grpc", b"application/grpc", b"text/html"))),
        (b"te", b"trailers"),
        (b"grpc-timeout", random.choice((b"10S", b"1n", b"99999999H", b"x", b""))),
        (b"grpc-encoding", random.choice((b"identity", b"gzip", b"br"))),
        (b"x", b"y" * random.choice((0, 100, 20_000))),
    ]
    random.shuffle(headers) if random.random() < 0.2 else None
    if random.random() < 0.3:
        del headers[random.randrange(len(headers))]
    block = b"".join(_literal(*pair) for pair in headers)
    size = random.choice((len(data), len(data), 0, 2**31 - 1, 2**32 - 1, len(data) + 1))
    body = struct.pack(">BI", random.choice((0, 0, 1, 255)), size) + data
    frames = [
        frame(4, 0, 0, b""),
        frame(1, 4, 1, block),
        frame(0, 1, 1, body),
        frame(
            random.randrange(12),
            random.randrange(256),
            random.choice((0, 1, 2, 3, 2**31 - 1)),
            b"\0" * 8,
        ),
        frame(8, 0, random.choice((0, 1)), struct.pack(">I", random.choice((0, 1, 2**31 - 1)))),
        frame(6, 0, 0, b"pingpong"),
        frame(9, random.choice((0, 4)), 1, block[:20]),
        frame(3, 0, 1, struct.pack(">I", 8)),
    ]
    chosen = frames[:3] + random.sample(frames[3:], random.randrange(4))
    if random.random() < 0.3:
        random.shuffle(chosen)
    found = _PREFACE + b"".join(chosen)
    return damaged(random, found) if random.random() < 0.6 else found


UNFRAMED_SHARE = 0.04
STREAM_SHARE = 0.02
