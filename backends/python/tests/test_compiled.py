"""The classes that models use, compiled for the server's interpreter and as Python in others."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import backend_python
import pytest
import triton_python_backend_utils as pb_utils

PACKAGE = Path(backend_python.__file__).parent
SOURCES = sorted(
    path.with_suffix(suffix)
    for path in PACKAGE.rglob("*.pxd")
    for suffix in (".py", ".pyx")
    if path.with_suffix(suffix).exists()
)

# The files of a separate interpreter: the same modules, as Python.
ALONE = f"""
import sys
sys.path.insert(0, {str(PACKAGE / "child")!r})
import alone
sys.path.pop(0)
sys.meta_path.insert(0, alone.Finder)
"""

TOLD = r"""
import copy, json, pickle, weakref
import numpy as np
import triton_python_backend_utils as pb_utils
from backend_python.api import tensor as api_tensor

told = []

def tell(function):
    try:
        told.append(repr(function()))
    except Exception as error:
        # CPython and Cython tell of attributes that are not there in words of their own.
        text = "" if isinstance(error, (AttributeError, pickle.PicklingError)) else str(error)
        text = text.replace("backend_python.api.tensor.", "")
        told.append(f"{type(error).__name__}: {text}")

def kept(value):
    return pickle.loads(pickle.dumps(value))

one = np.arange(6, dtype=np.float32).reshape(2, 3)
tensor = pb_utils.Tensor("x", one)
words = pb_utils.Tensor("w", np.array([b"a", "b"], object))
received = api_tensor.received("r", 11, (2,), b"....\0\0\0\0\0\0\x80?", 4, 8)
def request(inputs=(), outputs=(), model="m", **more):
    return pb_utils.InferenceRequest(
        inputs=inputs, requested_output_names=outputs, model_name=model, **more
    )
response = pb_utils.InferenceResponse([tensor, words], parameters={"a": 1})

for each in (tensor, words, received):
    tell(lambda: (each, each.name(), each.shape(), each.triton_dtype(), each.is_cpu()))
    tell(each.as_numpy)
    tell(lambda: bytes(each._wire()))
    tell(lambda: (copy.copy(each), each._renamed("y"), kept(each).as_numpy()))
    tell(lambda: each.anything)
    tell(lambda: setattr(each, "anything", 1))
    tell(lambda: weakref.ref(each)() is each)
    tell(lambda: hasattr(each, "__dict__"))
for array in (one.T, one[:, ::2], one.astype(">f4"), np.zeros((), "i8"), np.zeros(0, "?"), [1], 1.5,
              np.array(["a"]), np.array([b"a"]), np.zeros(1, "M8[s]"), np.zeros(2, "q"), np.zeros(2, "L"),
              np.matrix("1 2"), np.zeros(1, complex), None):
    tell(lambda: (pb_utils.Tensor("x", array).triton_dtype(), pb_utils.Tensor("x", array).as_numpy()))
for name in ("", b"x", bytearray(b"x"), b"\xff", 3, None, np.str_("x")):
    tell(lambda: pb_utils.Tensor(name, one))
tell(lambda: pb_utils.Tensor.from_dlpack("d", tensor))
tell(lambda: pb_utils.Tensor.from_dlpack("d", one).as_numpy())

for arguments in ({}, {"outputs": "y"}, {"outputs": [""]}, {"inputs": [None]}, {"inputs": [1]},
                  {"model": None}, {"correlation_id": "c"}, {"correlation_id": 1.5}, {"flags": -1},
                  {"timeout": 2**63}, {"parameters": {"a": []}}, {"trace": 1}, {"preferred_memory": 1}):
    tell(lambda: type(request(**arguments)).__name__)
asked = request([tensor, words], ["y", "z"], request_id="i", correlation_id=2**63, flags=3, timeout=9,
                parameters={"a": True})
for each in (asked, kept(asked), copy.copy(asked)):
    tell(lambda: (each.request_id(), each.correlation_id(), each.flags(), each.timeout(), each.parameters()))
    tell(lambda: (sorted(each.requested_output_names()), each.inputs(), each.model_name, each.model_version))
    tell(lambda: (each.is_cancelled(), each.get_response_sender(), each.trace().get_context(), each._key))
tell(asked.exec)
tell(lambda: setattr(asked, "model_name", "other"))
tell(lambda: (asked.model_name, asked.set_flags(1), asked.flags(), asked.set_release_flags(2)))
tell(lambda: setattr(asked, "anything", 1))

for arguments in (([],), ((),), (None,), ([1],), ([None],), ([], "no"), ([], None, []), ([], None, {1: 2})):
    tell(lambda: pb_utils.InferenceResponse(*arguments).output_tensors())
tell(lambda: (response.has_error(), response.error(), response.parameters(), response.output_tensors()))
tell(lambda: kept(response).output_tensors())
tell(lambda: pb_utils.InferenceResponse(error=pb_utils.TritonError("bad")).error().message())

class Own(pb_utils.InferenceRequest):
    def inputs(self):
        return [words]

class Named(pb_utils.Tensor):
    def name(self):
        return "mine"

own = Own(inputs=[tensor], requested_output_names=[], model_name="m")
named = Named("x", one)
for where, name in ((asked, "x"), (asked, "w"), (asked, "no"), (asked, None), (own, "x"), (own, "w")):
    tell(lambda: pb_utils.get_input_tensor_by_name(where, name))
tell(lambda: pb_utils.get_output_tensor_by_name(response, "w"))
tell(lambda: (named.name(), named.shape(), isinstance(named, pb_utils.Tensor)))
named.anything = 1
tell(lambda: pb_utils.InferenceResponse([named]).output_tensors()[0].anything)

pb_utils.Tensor.total = lambda self: float(self.as_numpy().sum())
tell(tensor.total)

print(json.dumps([api_tensor.__file__, told]))
"""


def told(before=""):
    """Run the code `before` and TOLD in a new process. Return the JSON that it prints."""
    done = subprocess.run(
        [sys.executable, "-c", before + TOLD], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_compiled_module_is_not_older_than_its_source(source):
    name = ".".join(source.relative_to(PACKAGE.parent).with_suffix("").parts)

    found = importlib.util.find_spec(name)

    module = Path(found.origin)
    assert module.suffix == ".so", f"{name} is not compiled: run `make dev`"
    newest = max((source, source.with_suffix(".pxd")), key=lambda path: path.stat().st_mtime)
    assert module.stat().st_mtime >= newest.stat().st_mtime, (
        f"{newest.name} has changed since {name} was built: run `make dev`"
    )


def test_compiled_classes_and_those_of_python_do_the_same():
    compiled, found = told()
    plain, expected = told(ALONE)

    assert (Path(compiled).suffix, Path(plain).suffix) == (".so", ".py")
    assert found == expected


def test_a_model_may_change_a_class(monkeypatch):
    monkeypatch.setattr(pb_utils.InferenceResponse, "size", lambda self: 3, raising=False)

    assert pb_utils.InferenceResponse([]).size() == 3
