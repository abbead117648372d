"""core_abi.h: its structs in the layout of compilers, and the refusal of other versions."""

import ctypes
import re
import subprocess
import sys

import numpy as np
import pytest
from unit.native_backends import playing

import core
from core.errors import CoreError
from core.native.callbacks import ABI_VERSION
from core.pipeline.instances.runner import open_instance

HEADER = (playing.INCLUDE / "core_abi.h").read_text()
DECLARED = (playing.INCLUDE.parent / "abi.pxd").read_text()
X = {"x": np.ones((2, 3), np.float32)}

# Offsets on machines with 64 bits, in the order of the members. They change with CORE_ABI_VERSION only;
# what ends with "…" may grow behind them.
LAYOUT = {
    "core_tensor": "name 0, data 8, shape 16, byte_size 24, dtype 32, dimensions 36, device_kind 40, "
    "device_id 44, sizeof 48",
    "core_parameter": "name 0, text 8, integer 16, number 24, kind 32, reserved 36, sizeof 40",
    "core_request": "first_row 0, rows 8, inputs 16, deadline_ns 24, cancelled 32, flags 40, reserved 44, "
    "sizeof 48",
    "core_details": "struct_size 0, parameter_count 4, output_count 8, reserved 12, id 16, "
    "correlation_id 24, correlation_text 32, priority 40, timeout_us 48, parameters 56, outputs 64, …",
    "core_batch": "struct_size 0, request_count 4, input_count 8, has_rows 12, rows 16, inputs 24, "
    "requests 32, all 40, core 48, compute_start_ns 56, compute_end_ns 64, …",
    "core_instance": "abi_version 0, struct_size 4, flags 8, self 16, execute 24, attach 32, …",
    "core_calls": "abi_version 0, struct_size 4, output 8, give 16, parameter 24, fail 32, one 40, later 48, "
    "send 56, release 64, has_room 72, is_cancelled 80, reschedule 88, details 96, now_ns 104, log 112, "
    "metric 120, metric_add 128, metric_set 136, metric_release 144, …",
}


def members(struct):
    return [each.split() for each in LAYOUT[struct].split(", ") if each != "…"]


@pytest.mark.skipif(sys.maxsize < 2**32, reason="the table is of machines with 64 bits")
@pytest.mark.parametrize("language", ["c", "c++"])
def test_the_layout_of_a_version_stays(tmp_path, language):
    lines = []
    for struct in LAYOUT:
        for name, _ in members(struct):
            what = f"sizeof({struct})" if name == "sizeof" else f"offsetof({struct}, {name})"
            lines.append(f'printf("{struct} {name} %zu\\n", {what});')
    source = tmp_path / "probe.c"
    source.write_text(
        "#include <stdio.h>\n#include <core_abi.h>\n"
        f"int main(void) {{ {' '.join(lines)} return CORE_ABI_VERSION - {ABI_VERSION}; }}\n"
    )
    compiler = [playing.compiler(), "-x", language]
    standard = ["-std=c99", "-pedantic-errors", "-Wall", "-Wextra", "-Werror"]
    flags = standard if language == "c" else ["-std=c++11", "-Wall", "-Wextra", "-Werror"]
    include = f"-I{playing.INCLUDE}"
    subprocess.run([*compiler, *flags, include, source, "-o", tmp_path / "probe"], check=True)

    done = subprocess.run([tmp_path / "probe"], capture_output=True, text=True, check=True)

    expected = [f"{struct} {name} {at}" for struct in LAYOUT for name, at in members(struct)]
    assert done.stdout.splitlines() == expected


def test_cython_declares_the_names_of_the_header():
    for struct in LAYOUT:
        body = re.search(rf"ctypedef struct {struct}:\n((?: {{8}}.*\n|\n)+)", DECLARED)[1]
        wanted = {name for name, _ in members(struct)} - {"sizeof", "reserved"}
        assert {name for name in wanted if not re.search(rf"\b{name}\b", body)} == set(), struct


def test_cython_declares_every_constant_of_the_header():
    constants = set(re.findall(r"^  (CORE_[A-Z0-9_]+) = ", HEADER, re.M))

    assert constants - set(re.findall(r"CORE_[A-Z0-9_]+", DECLARED)) == set()


def refusal(library, change):
    """Return the refusal of a model whose backend returns a struct modified by `change`."""
    instance = playing.backend_of(library, "copy", change).instance()
    instance.open()
    with pytest.raises(CoreError) as refused:
        open_instance(instance)
    return refused.value.message


def changed(**members):
    def change(struct):
        for name, value in members.items():
            setattr(struct, name, value)

    return change


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {"abi_version": ABI_VERSION - 1},
            f"was built for core ABI {ABI_VERSION - 1}, this core has {ABI_VERSION}: reinstall the backend",
        ),
        (
            {"abi_version": ABI_VERSION + 1},
            f"was built for core ABI {ABI_VERSION + 1}, this core has {ABI_VERSION}: upgrade core",
        ),
        ({"struct_size": 12}, "gave a core_instance of 12 bytes, core ABI 1 has at least 32"),
        ({"flags": 0x80}, "asks for flags 0x80, this core has 0x1: upgrade core"),
        ({"execute": None}, "gave a core_instance without `execute`"),
    ],
)
def test_a_backend_of_another_abi_is_refused_by_name(library, members, message):
    assert refusal(library, changed(**members)) == f"unit.native_backends.playing {message}" + (
        ": set struct_size to sizeof(core_instance)" if "struct_size" in members else ""
    )


@pytest.mark.parametrize("native", [object(), 7])
def test_an_object_that_is_not_a_capsule_is_refused(native):
    class Wrong(core.ModelInstance):
        closed = False

        def open(self):
            self.native = native

        def close(self):
            self.closed = True

    instance = Wrong()
    with pytest.raises(CoreError, match=r"expected a capsule named 'core\.instance'"):
        open_instance(instance)
    assert instance.closed


def test_a_capsule_of_another_name_is_refused(library):
    class Wrong(core.ModelInstance):
        def open(self):
            self.native = playing.capsule(library, "copy", name=b"dltensor")

    with pytest.raises(CoreError, match="gave PyCapsule as `native`"):
        open_instance(Wrong())


def test_a_refused_backend_fails_the_load(serve):
    with pytest.raises(CoreError, match="was built for core ABI 9, this core has 1: upgrade core"):
        serve("copy", change=changed(abi_version=9))


def test_known_members_of_a_longer_struct_are_read(serve):
    served = serve("copy", change=changed(struct_size=4096))

    np.testing.assert_array_equal(served.ask(X)["y"], X["x"])


def test_a_member_beyond_the_struct_size_is_not_read(serve, library):
    before = library.player_count(1)
    attach = playing.Struct.attach

    served = serve("copy", change=changed(struct_size=attach.offset))

    np.testing.assert_array_equal(served.ask(X)["y"], X["x"])
    assert library.player_count(1) == before


def test_attach_is_called_once(serve, library):
    before = library.player_count(1)

    served = serve("copy")
    served.ask(X)
    served.ask(X)

    assert library.player_count(1) == before + 1


def test_an_instance_without_execute_is_refused():
    with pytest.raises(NotImplementedError, match="neither execute, nor stream, nor `native`"):
        core.ModelInstance().execute(None)


def test_pointers_have_the_size_that_the_table_expects():
    assert ctypes.sizeof(playing.Struct) == 40
