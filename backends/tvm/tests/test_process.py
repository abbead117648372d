"""A damaged module ends the process of its model, and nothing else, with EXECUTION_MODE process."""

import platform
import struct

import numpy as np
import pytest
from backend_tvm.conformance import save

import core
from core.errors import CoreError

pytest.importorskip("backend_python", reason="processes of models need backend-python")

CONFIG = 'backend: "tvm" max_batch_size: 4\n'
APART = 'parameters { key: "EXECUTION_MODE" value { string_value: "process" } }'
X = np.ones((2, 3), np.float32)
SECTION = struct.Struct("<2I4Q2I2Q")  # name, type, flags, address, offset, size, …
SYMBOL = struct.Struct("<I2BH2Q")  # name, kind, visibility, section, address, size
DYNAMIC_SYMBOLS, FUNCTION = 11, 2
ILLEGAL = b"\x0f\x0b" if platform.machine() in ("x86_64", "AMD64") else b"\0\0"


def without_code(library):
    """Return the library with an illegal instruction in place of each in the functions that it exports."""
    content = bytearray(library)
    (place,) = struct.unpack_from("<Q", content, 40)
    size, count = struct.unpack_from("<2H", content, 58)
    sections = [SECTION.unpack_from(content, place + i * size) for i in range(count)]
    for _, kind, _, _, offset, length, *_ in sections:
        if kind != DYNAMIC_SYMBOLS:
            continue
        for each in range(offset, offset + length, SYMBOL.size):
            _, info, _, number, address, code_bytes = SYMBOL.unpack_from(content, each)
            if info % 16 == FUNCTION and 0 < number < count:
                start = address - sections[number][3] + sections[number][4]
                content[start : start + code_bytes] = (ILLEGAL * code_bytes)[:code_bytes]
    return bytes(content)


def test_the_server_and_the_next_request_live(tmp_path):
    for name, more in (("damaged", APART), ("good", "")):
        (tmp_path / name / "1").mkdir(parents=True)
        (tmp_path / name / "config.pbtxt").write_text(CONFIG + more)
        save(tmp_path / name / "1", lambda x: x + x, x=("float32", ("b", 3)))
    file = tmp_path / "damaged" / "1" / "model.so"
    whole = file.read_bytes()
    file.write_bytes(without_code(whole))

    names = ["damaged", "good"]
    with core.Server(
        model_repository=str(tmp_path), model_control_mode="explicit", load_model=names
    ) as server:
        with pytest.raises(CoreError, match=r"'damaged_0.*' is not healthy"):
            server.infer("damaged", {"x": X})

        assert server.infer("good", {"x": X})["output0"].tolist() == (2 * X).tolist()
        file.write_bytes(whole)
        server.load("damaged")
        assert server.infer("damaged", {"x": X})["output0"].tolist() == (2 * X).tolist()
