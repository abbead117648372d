"""Damaged files end no process, replaced ones are loaded anew, many loads need no more memory."""

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from backend_tvm.conformance import save
from backend_tvm.reading import read_model
from backend_tvm.settings import Settings
from core_testing.leftovers import growth_by_loads
from core_testing.served import AskedModel

from core.config import parse_text
from core.errors import CoreError

X = np.ones((2, 3), np.float32)


def times(factor):
    def function(x):
        found = x
        for _ in range(factor - 1):
            found = found + x
        return found

    return lambda folder: save(folder, function, x=("float32", ("b", 3)))


def test_truncated_modules_fail_the_load(serve, tmp_path):
    model = serve(times(2))
    chance, file = random.Random(1), tmp_path / "models" / "m" / "1" / "model.so"
    good = file.read_bytes()
    for _ in range(40):
        file.write_bytes(good[: chance.randrange(len(good))])
        with pytest.raises(CoreError, match=r"model\.so"):
            model.served.load("m")
    file.write_bytes(good)
    model.served.load("m")
    assert model(x=X)["output0"].tolist() == (2 * X).tolist()


def test_changed_bytes_raise_nothing_but_core_errors_when_files_are_read(tmp_path):
    times(2)(tmp_path)
    chance, file = random.Random(2), tmp_path / "model.so"
    good = file.read_bytes()
    for _ in range(300):
        content = bytearray(good)
        content[chance.randrange(len(content))] = chance.randrange(256)
        file.write_bytes(content)
        try:
            read_model(parse_text('name: "m"', ""), tmp_path, Settings())
        except CoreError:
            pass


def test_a_module_that_is_replaced_in_its_place_is_loaded_anew(serve, tmp_path):
    model = serve(times(2))
    assert model(x=X)["output0"].tolist() == (2 * X).tolist()
    other = tmp_path / "other"
    other.mkdir()
    times(3)(other)

    (tmp_path / "models" / "m" / "1" / "model.so").write_bytes((other / "model.so").read_bytes())
    model.served.load("m")

    assert model(x=X)["output0"].tolist() == (3 * X).tolist()


def test_memory_is_flat_over_a_thousand_loads(serve):
    model = serve(times(2))
    before = mapped()

    assert growth_by_loads(model.served, "m", lambda: model(x=X), 1000) < 4 << 20
    assert mapped() - before < 40


def test_a_module_whose_file_was_touched_is_replaced(serve, tmp_path):
    model = serve(times(2))
    file, before = tmp_path / "models" / "m" / "1" / "model.so", mapped()
    for second in range(50):
        os.utime(file, (second, second))
        model.served.load("m")
        assert model(x=X)["output0"].tolist() == (2 * X).tolist()

    assert mapped() - before < 40


def mapped():
    """The number of mappings of modules into this process: several for each that is loaded."""
    return Path("/proc/self/maps").read_text().count("core-tvm-")


def test_models_that_load_at_once(serve, tmp_path):
    model = serve(times(2))
    for i in range(4):
        other = tmp_path / "models" / f"n{i}" / "1"
        other.mkdir(parents=True)
        times(i + 1)(other)
        (other.parent / "config.pbtxt").write_text('backend: "tvm"')

    model.served.load_together([f"n{i}" for i in range(4)])

    for i in range(4):
        answer = AskedModel(model.served, f"n{i}")(x=X)["output0"]
        assert answer.tolist() == ((i + 1) * X).tolist()


ONLY_THE_RUNTIME = """
import os, sys
from backend_tvm.framework import import_tvm
import_tvm("m")
print("libtvm_compiler" in open("/proc/self/maps").read(), "TVM_USE_RUNTIME_LIB" in os.environ)
print(os.environ["TVM_BIND_THREADS"])
"""


def test_the_compiler_is_not_loaded():
    done = subprocess.run(
        [sys.executable, "-c", ONLY_THE_RUNTIME], capture_output=True, text=True, check=True
    )

    assert done.stdout == "False False\n0\n"
