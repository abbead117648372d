"""The operation of a request to an engine, for its trace: each route names what its generation is for."""

from types import SimpleNamespace

import pytest
from core_generate import instance
from core_generate.spans import operation_of
from frontend_openai.conversation import name_chats

from core.request import InferenceRequest

pytest.importorskip("backend_testing.letters")

MESSAGES = [{"role": "user", "content": "x"}]


@pytest.mark.parametrize(
    ("path", "fields", "name"),
    [
        ("/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 1, "n": 2}, "chat"),
        ("/v1/messages", {"messages": MESSAGES, "max_tokens": 1}, "chat"),
        ("/v1/responses", {"input": "x", "max_output_tokens": 1}, "chat"),
        ("/v1/completions", {"prompt": "x", "max_tokens": 1}, "text_completion"),
    ],
)
def test_each_route_names_its_operation(letters, connect, monkeypatch, path, fields, name):
    found, run = [], instance.GenerationRun

    def seen(batch, *others):
        found.append(operation_of(batch.requests[0]))
        return run(batch, *others)

    monkeypatch.setattr(instance, "GenerationRun", seen)
    status, _ = connect(letters[1]).ask(path, {"model": "letters", **fields})

    assert status == 200
    assert found == [name] * fields.get("n", 1)


def test_a_model_without_an_engine_sees_no_parameter():
    request = InferenceRequest("m", {})

    name_chats([request], SimpleNamespace(info=SimpleNamespace(is_engine=False)))

    assert not request.has_parameters
