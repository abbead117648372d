"""vLLM's own file: the arguments that are read from its source, which is not imported."""

import ast
import gc
import threading

from backend_vllm.installed import arguments_in


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
