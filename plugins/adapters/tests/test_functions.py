"""Functions with types: inputs and outputs come from the signature."""

import re
from pathlib import Path

import numpy as np
import pytest

from core import CoreError

HEAD = """
from typing import Annotated, Any, Iterator, List, NamedTuple, Optional, Tuple
import numpy as np
"""


@pytest.fixture
def serve(version, server):
    """Load a model of a file with that text."""

    def start(source, config=None):
        (version(config) / "model.py").write_text(HEAD + source)
        server.load()
        return server

    return start


def tensors(server, kind):
    found = server._server.models.metadata("example")[kind]
    return {each["name"]: (each["datatype"], each["shape"]) for each in found}


def texts(*values):
    return np.array(values, np.object_)


def test_the_function_of_the_documentation_is_served(serve):
    (page,) = (Path(__file__).parents[3] / "docs").rglob("other-classes.md")
    (block,) = re.findall(r"```python\n([^`]*def predict\(text[^`]*)```", page.read_text())
    server = serve(block)

    answer = server.ask({"text": texts("a b c"), "limit": np.array([2])})

    assert answer["y"].tolist() == [b"a", b"b"]
    assert server.ask({"text": texts("a b c d")})["y"].tolist() == [b"a", b"b", b"c"]


@pytest.mark.parametrize(
    ("type", "value", "datatype", "shape"),
    [
        ("int", np.array([7]), "INT64", [1]),
        ("float", np.array([0.5]), "FP64", [1]),
        ("bool", np.array([True]), "BOOL", [1]),
        ("str", texts("é"), "BYTES", [1]),
        ("bytes", texts(b"\xff\x00"), "BYTES", [1]),
        ("List[float]", np.array([1.5, 2.5]), "FP64", [-1]),
        ("List[List[int]]", np.array([[1, 2], [3, 4]]), "INT64", [-1, -1]),
        ("Optional[str]", texts("a"), "BYTES", [1]),
        ("np.ndarray", np.array([[1.0]]), "FP64", [-1, -1]),
        ("np.ndarray[Any, np.dtype[np.float32]]", np.ones((1, 2), np.float32), "FP32", [-1, -1]),
        ('Annotated[np.ndarray, ("INT8", [2, -1])]', np.ones((2, 3), np.int8), "INT8", [2, -1]),
        ("dict", texts('{"a": [1]}'), "BYTES", [1]),
    ],
)
def test_a_type_says_datatype_and_shape_and_the_value_comes_back(
    serve, type, value, datatype, shape
):
    server = serve(f"def echo(x: {type}) -> {type}:\n    return x\n")

    answer = server.ask({"x": value})["y"]

    assert tensors(server, "inputs") == {"x": (datatype, shape)}
    assert tensors(server, "outputs") == {"y": (datatype, shape)}
    expected = (
        [e if isinstance(e, bytes) else e.encode() for e in value]
        if value.dtype == object
        else value
    )
    np.testing.assert_array_equal(answer, np.array(expected, answer.dtype))


def test_the_function_gets_values_of_its_types(serve):
    server = serve(
        "def types(a: int, b: str, c: bytes, d: List[float], e: dict) -> List[str]:\n"
        "    return [type(x).__name__ for x in (a, b, c, d, d[0], e)]\n"
    )

    answer = server.ask(
        {
            "a": np.array([1]),
            "b": texts("x"),
            "c": texts("y"),
            "d": np.array([0.5]),
            "e": texts("{}"),
        }
    )

    assert answer["y"].tolist() == [b"int", b"str", b"bytes", b"list", b"float", b"dict"]


@pytest.mark.parametrize(
    ("returns", "value", "names"),
    [
        ("Tuple[int, str]", '(1, "a")', ["y0", "y1"]),
        ("Two", 'Two(1, "a")', ["n", "s"]),
        ("Two", '{"n": 1, "s": "a"}', ["n", "s"]),
    ],
)
def test_a_result_may_be_several_outputs(serve, returns, value, names):
    server = serve(
        "class Two(NamedTuple):\n    n: int\n    s: str\n"
        f"def make(x: int) -> {returns}:\n    return {value}\n"
    )

    answer = server.ask({"x": np.array([0])})

    assert [answer[name].tolist() for name in names] == [[1], [b"a"]]


def test_a_coroutine_and_its_error(serve):
    server = serve(
        "import asyncio\nasync def wait(x: int) -> int:\n    await asyncio.sleep(0)\n    return 1 // x\n"
    )

    assert server.ask({"x": np.array([1])})["y"].tolist() == [1]
    with pytest.raises(CoreError, match="ZeroDivisionError") as error:
        server.ask({"x": np.array([0])})
    assert "model.py(" in str(error.value)
    assert "core_adapters" not in str(error.value)


def test_a_generator_answers_several_times(version, server):
    (version() / "model.py").write_text(
        HEAD + "def count(n: int) -> Iterator[int]:\n    yield from range(n)\n"
    )
    server.load()

    assert server._server.models.config_json("example")["model_transaction_policy"]["decoupled"]


def test_predict_is_the_model_and_other_functions_are_its_own(serve):
    server = serve(
        "from json import loads\ndef part(x): return x + 1\ndef main(): ...\n"
        "def predict(x: int) -> int:\n    return part(x)\n"
    )

    assert server.ask({"x": np.array([1])})["y"].tolist() == [2]


def test_the_configuration_names_one_of_several_functions(serve):
    server = serve(
        "def a(x: int) -> int: return 1\ndef b(x: int) -> int: return 2\n",
        'parameters { key: "MODEL_FUNCTION" value { string_value: "b" } }',
    )

    assert server.ask({"x": np.array([0])})["y"].tolist() == [2]


def test_the_configuration_describes_a_function_without_types(serve):
    server = serve(
        "def predict(x):\n    return x * 2\n",
        'input [ { name: "x" data_type: TYPE_FP32 dims: [ 2 ] } ]'
        'output [ { name: "y" data_type: TYPE_FP32 dims: [ 2 ] } ]',
    )

    assert server.ask({"x": np.ones(2, np.float32)})["y"].tolist() == [2, 2]


@pytest.mark.parametrize(
    ("source", "config", "reason"),
    [
        (
            "def predict(x, y: int): ...",
            None,
            r"has no type for parameter 'x', the result; write types, such as `def predict\(text",
        ),
        ("def a(): ...\ndef b(): ...", None, "defines several functions: a, b; call one predict"),
        (
            "def a(x: int) -> int: ...",
            'parameters { key: "MODEL_FUNCTION" value { string_value: "c" } }',
            "MODEL_FUNCTION is 'c', but .* defines a",
        ),
        (
            "def a(x: int) -> int: ...",
            'input [ { name: "z" data_type: TYPE_INT64 dims: [ 1 ] } ]',
            "input 'z' is no parameter of function 'a' of .*; it has x",
        ),
        (
            'def a(x: Annotated[np.ndarray, ("FP7", [1])]) -> int: ...',
            None,
            r'expected a datatype and a shape, such as \("FP32", ',
        ),
        ("def a(x: Unknown) -> int: ...", None, "name 'Unknown' is not defined"),
        ("async def a(x: int) -> Iterator[int]:\n    yield 1", None, "is an async generator"),
    ],
)
def test_a_function_that_cannot_be_served_says_what_to_write(serve, source, config, reason):
    with pytest.raises(CoreError, match=reason):
        serve(source, config)
