"""Attributes of a generation on the span of its model, after a request to a server."""

import asyncio
import json

import numpy as np
import pytest
from backend_testing.letters import letters
from core_opentelemetry.spans import spans_of
from core_testing.served import request_of

from core.errors import CoreError
from core.telemetry.tracing.trace import Trace

pytest_plugins = ["core_testing.plugin"]


def text(*values):
    return np.array([each.encode() for each in values], object)


@pytest.fixture
def traced(model_repository, serve_repository):
    """A function that sends one request to `letters`; it returns the span of the model, and all spans."""

    def send(inputs, cancelled=False, asked=None, **settings):
        parameters = "".join(
            f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n'
            for name, value in settings.items()
        )
        model_repository.add("m", parameters)
        served = serve_repository(letters)
        request = request_of(inputs, (), "m")
        request.parameters = asked or {}

        async def act():
            trace = request.trace = Trace(1, "m", 1, "", ("TIMESTAMPS",))
            trace.begin_spans(None)
            trace.stamp("REQUEST_START")
            ended = asyncio.Event()
            errors = []

            def arrived(item, final):
                if isinstance(item, CoreError):
                    errors.append(item)
                elif cancelled:
                    request.cancel()
                if final:
                    ended.set()

            served._server.models.infer(request).listen(arrived)
            await asyncio.wait_for(ended.wait(), 60)
            assert bool(errors) == cancelled
            await asyncio.sleep(0.05)
            trace.stamp("REQUEST_END")
            return spans_of(trace, 0)

        spans = served._call(act())
        (model,) = [each for each in spans if each.name == "m"]
        return model, spans

    return send


def test_a_generation_has_the_attributes_of_the_conventions(traced):
    sampling = {"max_tokens": 3, "temperature": 0, "stop": ["zz"], "top_p": 0.5}
    found, spans = traced(
        {"text_input": text("abc"), "sampling_parameters": text(json.dumps(sampling))}
    )

    named = {name: value for name, value in found.attributes.items() if name.startswith("gen_ai.")}
    first_s = named.pop("gen_ai.response.time_to_first_chunk")
    assert named == {
        "gen_ai.operation.name": "text_completion",
        "gen_ai.provider.name": "core",
        "gen_ai.request.model": "m",
        "gen_ai.request.max_tokens": 3,
        "gen_ai.request.temperature": 0,
        "gen_ai.request.top_p": 0.5,
        "gen_ai.request.stop_sequences": ("zz",),
        "gen_ai.usage.input_tokens": 4,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.response.finish_reasons": ("length",),
    }
    assert 0 < first_s < 60
    assert found.attributes["triton.model_name"] == "m"
    (compute,) = [each for each in spans if each.name == "compute"]
    assert [name for name, _ in compute.events].count("FIRST_TOKEN") == 1


def test_what_the_client_has_not_set_is_absent(traced):
    found, _ = traced({"text_input": text("abc")}, context="20")

    assert [each for each in found.attributes if each.startswith("gen_ai.request.")] == [
        "gen_ai.request.model"
    ]


def test_a_cancelled_generation_has_its_tokens_and_no_reason(traced):
    found, _ = traced(
        {"text_input": text("abc"), "stream": np.array([True])}, cancelled=True, delay_ms="1"
    )

    assert found.attributes["gen_ai.usage.output_tokens"] >= 1
    assert "gen_ai.response.finish_reasons" not in found.attributes


@pytest.mark.parametrize(
    ("asked", "name"),
    [({"operation": "chat"}, "chat"), ({"operation": "secret"}, "text_completion")],
)
def test_a_route_names_a_chat_and_nothing_else(traced, asked, name):
    found, _ = traced({"text_input": text("abc")}, context="20", asked=asked)

    assert found.attributes["gen_ai.operation.name"] == name


def test_embeddings_are_an_operation_of_their_own(traced):
    found, _ = traced({"text_input": text("abc", "de")}, task="embed")

    assert found.attributes["gen_ai.operation.name"] == "embeddings"
    assert found.attributes["gen_ai.usage.input_tokens"] == 7


def test_ranks_are_an_operation_of_their_own(traced):
    found, _ = traced({"query": text("abc"), "documents": text("abc", "de")}, task="rank")

    named = {name: value for name, value in found.attributes.items() if name.startswith("gen_ai.")}
    tokens = named.pop("gen_ai.usage.input_tokens")
    assert named == {
        "gen_ai.operation.name": "rerank",
        "gen_ai.provider.name": "core",
        "gen_ai.request.model": "m",
    }
    assert tokens >= len("abcde")
