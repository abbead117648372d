"""auto_complete_config: a short-lived child lets the model complete its configuration."""

import sys
import threading
from functools import partial

import pytest
from backend_python.entry import backend
from backend_python.server.complete import cannot_complete

from core import CoreError
from core import config as configuration

EXECUTE = "\n    def execute(self, requests):\n        return []\n"


def complete(folder, source, text='max_batch_size: 0 backend: "python"'):
    version = folder / "1"
    version.mkdir(parents=True, exist_ok=True)
    (version / "model.py").write_text(source)
    config = configuration.parse_text(f'name: "m" {text}', "test")
    backend.complete(config, version, backend)
    return configuration.to_json(config)


def with_function(body):
    return (
        "import triton_python_backend_utils as pb_utils\n"
        "class TritonPythonModel:\n    @staticmethod\n    def auto_complete_config(config):\n"
        + "".join(f"        {line}\n" for line in body.splitlines())
        + EXECUTE
    )


def test_a_model_describes_itself(folder, children):
    found = complete(
        folder,
        with_function(
            "config.add_input({'name': 'x', 'data_type': 'TYPE_FP32', 'dims': [3]})\n"
            "config.add_input({'name': 'o', 'data_type': 'TYPE_STRING', 'dims': [-1], "
            "'optional': True})\n"
            "config.add_output({'name': 'y', 'data_type': 'TYPE_BF16', 'dims': [2, 2]})\n"
            "config.set_max_batch_size(4)\nconfig.set_dynamic_batching()\n"
            "config.set_model_transaction_policy({'decoupled': True})\nreturn config"
        ),
    )

    assert [
        (entry["name"], entry["data_type"], entry["dims"], entry["optional"])
        for entry in found["input"]
    ] == [("x", "TYPE_FP32", [3], False), ("o", "TYPE_STRING", [-1], True)]
    assert found["output"][0]["dims"] == [2, 2]
    assert found["max_batch_size"] == 4
    assert "dynamic_batching" in found
    assert found["model_transaction_policy"] == {"decoupled": True}
    assert children() == []


def test_only_the_fields_that_a_backend_may_change_are_taken_over(folder):
    found = complete(folder, with_function("config.as_dict()['name'] = 'n'\nreturn config"))

    assert found["name"] == "m"


@pytest.mark.parametrize(
    "body,text",
    [
        ("raise ValueError('no')", "ValueError: no\n\nAt:\n  {file}(5): auto_complete_config\n"),
        (
            "pass",
            "auto_complete_config function in model 'm' must return a valid pb.ModelConfig object.",
        ),
        ("import os; os._exit(1)", "Stub process 'm_auto_complete' is not healthy."),
        ("raise SystemExit(3)", "SystemExit: 3\n\nAt:\n"),
    ],
)
def test_failures_have_the_models_text(folder, body, text, children):
    with pytest.raises(CoreError) as error:
        complete(folder, with_function(body))

    assert error.value.message.startswith(text.format(file=folder / "1" / "model.py"))
    assert children() == []


def test_a_contradiction_to_the_configuration_is_an_error(folder):
    with pytest.raises(CoreError) as error:
        complete(
            folder,
            with_function(
                "config.add_input({'name': 'x', 'data_type': 'TYPE_INT8', 'dims': [3]})\n"
                "return config"
            ),
            'input [ { name: "x" data_type: TYPE_FP32 dims: [ 3 ] } ]',
        )

    assert "configuration expects datatype TYPE_FP32 for input 'x'" in error.value.message


def test_a_missing_file_is_an_error(folder):
    (folder / "1").mkdir(parents=True)
    config = configuration.parse_text('name: "m"', "test")

    with pytest.raises(CoreError, match="Python model file not found in"):
        backend.complete(config, folder / "1", backend)


def test_a_model_without_the_function_changes_nothing(folder):
    source = "class Base: pass\nclass TritonPythonModel(Base):" + EXECUTE

    assert complete(folder, source) == complete(folder, "class TritonPythonModel:" + EXECUTE)


def test_no_child_is_started_for_a_model_that_surely_lacks_the_function(folder, monkeypatch):
    from backend_python.server import process

    monkeypatch.setattr(process, "start", lambda *_: pytest.fail("a child was started"))

    complete(folder, "class TritonPythonModel:" + EXECUTE)


@pytest.mark.parametrize(
    "source,surely",
    [
        (b"class TritonPythonModel:\n    pass", True),
        (b"class TritonPythonModel():\n    pass", True),
        (b"class TritonPythonModel(Base):\n    pass", False),
        (b"class TritonPythonModel(metaclass=M):\n    pass", False),
        (b"@wrap\nclass TritonPythonModel:\n    pass", False),
        (b"class TritonPythonModel:\n    pass\nsetattr(TritonPythonModel, 'auto' + '')", False),
        (b"class TritonPythonModel:\n    auto_complete_config = f", False),
        (b"from other import TritonPythonModel", False),
        (b"if True:\n    class TritonPythonModel:\n        pass", False),
        (b"class TritonPythonModel", False),
        (b"\0", False),
    ],
)
def test_when_a_file_surely_lacks_the_function(source, surely):
    assert cannot_complete(source) == surely


class Garbage:
    """In a cycle, so that the collector ends it at any allocation; then another thread may run."""

    def __init__(self):
        self.itself = self

    def __del__(self):
        for _ in range(3000):
            pass


def test_many_threads_may_look_at_the_same_time(request):
    """Python 3.11 raises SystemError for a file that one thread parses while another one does."""
    request.addfinalizer(partial(sys.setswitchinterval, sys.getswitchinterval()))
    sys.setswitchinterval(1e-6)
    calls = "\n".join(f"    x{i} = f(a + {i}, [b, c.d])" for i in range(1000))
    source = f"def f():\n{calls}\nclass TritonPythonModel:{EXECUTE}".encode()
    raised = []

    def look():
        for _ in range(20):
            Garbage()
            try:
                cannot_complete(source)
            except Exception as error:
                raised.append(error)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert raised == []
