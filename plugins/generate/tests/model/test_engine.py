"""How a model calls its engine: threads, errors, and what is counted."""

import threading
import time

import pytest
from core_generate import Event

from core.errors import CoreError, internal

from .conftest import Ended, Plain, asked, backend_of, parameters, text_of

pytest_plugins = ["core_testing.plugin"]


def test_an_engine_is_called_on_a_thread_unless_it_is_quick(serve):
    names = []

    class Named(Plain):
        def generate(self, prompt, sampling, emit):
            names.append(threading.current_thread().name)
            return super().generate(prompt, sampling, emit)

    serve(backend=backend_of(Named)).stream(asked(), "m")

    assert names[0].startswith("m_")


@pytest.mark.parametrize("how", ["raise", "emit", "crash"])
def test_an_error_of_the_engine_is_that_of_the_request_only(serve, how):
    class Fails(Plain):
        def generate(self, prompt, sampling, emit):
            if prompt.text != "bad":
                return super().generate(prompt, sampling, emit)
            if how == "raise":
                raise internal("out of memory")
            if how == "crash":
                raise ValueError("out of memory")
            emit(Event("a", count=1))
            emit(internal("out of memory"))
            emit(Event("b", finish="stop"))
            return Ended()

    served = serve(backend=backend_of(Fails))

    with pytest.raises(CoreError, match="out of memory"):
        served.stream(asked("bad", "stream"), "m")
    assert text_of(served.stream(asked("a "), "m")) == "a text"


def test_metrics_count_tokens_and_times(serve):
    served = serve(parameters(context=64))
    served.stream(asked("abc", max_tokens=5), "m")
    served.stream(asked("ab", "stream", max_tokens=3), "m")

    def value(name, suffix=""):
        families = {f.name: f for f in served._on_loop(served._server.control.health.metrics_here)}
        (sample,) = (
            each
            for each in families[f"core_generation_{name}"].samples
            if each.suffix == suffix and each.labels["model"] == "m"
        )
        return sample.value

    # A generation is counted when it has left its slot: after its last response.
    end = time.monotonic() + 10
    while value("prompt_tokens") < 7 and time.monotonic() < end:
        time.sleep(0.01)
    assert (value("prompt_tokens"), value("tokens"), value("cached_tokens")) == (7, 8, 0)
    assert value("time_to_first_token_seconds", "_count") == 2
    assert value("time_per_token_seconds", "_count") == 2
    assert (value("running"), value("waiting"), value("cache_use")) == (0, 0, 0)
    served.unload("m")
    names = {f.name for f in served._on_loop(served._server.control.health.metrics_here)}
    assert "core_generation_tokens" not in names
