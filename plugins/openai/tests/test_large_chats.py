"""Large conversations are read, and made a prompt, outside the event loop: other clients do not wait."""

import socket
import threading

import orjson
import pytest
from core_generate.chat import read_template
from core_generate.chat.anthropic_events import sse
from core_generate.chat.responses_events import ResponseEvents
from frontend_openai import (
    conversation,
    document,
    embeddings,
    rerank,
    responses,
    sampling,
    tokenize,
)

from .conftest import LOOPING

pytest.importorskip("backend_testing.letters")

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
TOKENIZE, COUNT = "/tokenize", "/v1/messages/count_tokens"


@pytest.fixture
def rendering(monkeypatch):
    """Return the names of the threads that have applied a chat template to the end."""
    names, render = [], conversation.render

    def seen(*args, **kwargs):
        text = render(*args, **kwargs)
        names.append(threading.current_thread().name)
        return text

    monkeypatch.setattr(conversation, "render", seen)
    return names


@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES, TOKENIZE, COUNT])
def test_a_large_conversation_is_rendered_on_another_thread(letters, connect, rendering, path):
    client = connect(letters[1])

    def ask(text):
        messages = [{"role": "user", "content": text}]
        fields = {
            CHAT: {"messages": messages, "max_tokens": 1},
            MESSAGES: {"messages": messages, "max_tokens": 1},
            RESPONSES: {"input": messages, "max_output_tokens": 1},
        }
        body = {"model": "forever", **fields.get(path, {"messages": messages})}
        status, found = client.ask(path, body)
        assert status == 200, found

    ask("x" * 100)
    ask("x" * 100_000)

    small, large = rendering
    assert not small.startswith("http")
    assert large.startswith("http")


@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES, TOKENIZE, COUNT])
def test_a_looping_template_is_rendered_on_another_thread(
    letters, connect, rendering, monkeypatch, path
):
    monkeypatch.setattr("core_generate.chat.rendering.QUICK_S", 0.005)
    client = connect(letters[1])
    read_template(LOOPING).pace.slow = False  # as if this were the first test

    def ask(text):
        messages = [{"role": "user", "content": text}]
        tool = {"name": "add", "parameters": {"type": "object"}}
        fields = {
            CHAT: {
                "messages": messages,
                "stream_options": {"include_usage": True},
                "stream": True,
                "tools": [{"type": "function", "function": tool}],
            },
            MESSAGES: {
                "messages": messages,
                "max_tokens": 9,
                "tools": [{"name": "add", "input_schema": tool["parameters"]}],
            },
            RESPONSES: {"input": messages, "tools": [{"type": "function", **tool}]},
            TOKENIZE: {"messages": messages, "add_generation_prompt": True},
        }
        body = {"model": "loops", **fields.get(path, {"messages": messages})}
        connection = client.begin(path, body)
        answer = connection.getresponse()
        found = answer.read()
        connection.close()
        assert answer.status == 200, found
        return b"usage" in found

    generates = path in (CHAT, RESPONSES, MESSAGES)
    assert ask("short") == generates
    assert ask("long") == generates  # begun on the loop, stopped, and done elsewhere
    assert ask("short") == generates  # a template that once took long no longer begins there

    assert [each.startswith("http") for each in rendering] == [False, True, True]


def test_a_stream_goes_on_while_a_template_loops(letters, connect, monkeypatch):
    client, seen, during, render = connect(letters[1]), [], [], conversation.render

    def watched(*args, **kwargs):
        before = len(seen)
        text = render(*args, **kwargs)
        during.append(len(seen) - before)
        return text

    monkeypatch.setattr(conversation, "render", watched)
    body = {"model": "endless", "prompt": "x", "stream": True}
    connection = client.begin("/v1/completions", body)
    answer = connection.getresponse()

    def read():
        while line := answer.readline():
            seen.append(line)

    reader = threading.Thread(target=read)
    reader.start()
    chat = {"model": "loops", "messages": [{"role": "user", "content": "long"}]}
    status, found = client.ask(CHAT, chat)
    connection.sock.shutdown(socket.SHUT_RDWR)
    reader.join(10)

    assert status == 200, found
    assert during[-1] > 0


@pytest.fixture
def threads(monkeypatch):
    """Return a function (module, name) that returns the names of the threads that call this function."""

    def watch(module, name):
        names, work = [], getattr(module, name)

        def seen(*args, **kwargs):
            names.append(threading.current_thread().name)
            return work(*args, **kwargs)

        monkeypatch.setattr(module, name, seen)
        return names

    return watch


TOOL = {"name": "add", "parameters": {"type": "object", "properties": {"a": {}}}}
USER = [{"role": "user", "content": "x"}]


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        (CHAT, {"messages": USER, "tools": [{"type": "function", "function": TOOL}]}),
        (RESPONSES, {"input": "x", "tools": [{"type": "function", **TOOL}]}),
        (
            MESSAGES,
            {"messages": USER, "tools": [{"name": "add", "input_schema": TOOL["parameters"]}]},
        ),
    ],
)
def test_the_structure_of_large_tools_is_made_on_another_thread(
    letters, connect, threads, path, fields
):
    names = threads(sampling.SamplingFields, "set_structures")
    fields["tool_choice"] = {"type": "any"} if path == MESSAGES else "required"
    limit = "max_output_tokens" if path == RESPONSES else "max_tokens"

    for size in (10, 100_000):
        fields["tools"][0].get("function", fields["tools"][0])["description"] = "x" * size
        status, found = connect(letters[1]).ask(path, {"model": "forever", limit: 1, **fields})
        assert status == 200, found

    small, large = names
    assert not small.startswith("http")
    assert large.startswith("http")


@pytest.mark.parametrize(
    ("path", "model", "field", "module", "work"),
    [
        (CHAT, "letters", "messages", document, "count_values"),
        ("/v1/completions", "letters", "prompt", sampling, "_read_structure"),
        ("/v1/embeddings", "vectors", "input", embeddings, "_read_inputs"),
        ("/v1/rerank", "scores", "documents", rerank, "_read_documents"),
        ("/v1/rerank", "scores", "documents", rerank, "_ranking"),
        ("/v1/rerank", "scores", "documents", rerank, "json_response"),
        ("/v1/rerank", "vectors", "documents", rerank, "_embedding"),
        (TOKENIZE, "letters", "prompt", document, "count_values"),
    ],
)
def test_a_large_body_is_read_on_another_thread(
    letters, connect, threads, path, model, field, module, work
):
    names = threads(module, work)

    for size in (10, 100_000):
        text = "x" * size
        value = {"messages": [{"role": "user", "content": text}], "documents": [text]}
        more = {"query": "x", "return_documents": True} if field == "documents" else {}
        # A text that is longer than the context is refused by the model, after it is read.
        status, found = connect(letters[1]).ask(
            path, {"model": model, field: value.get(field, text), **more}
        )
        assert status == 200 or "context" in found["error"]["message"], found

    small, large = names
    assert not small.startswith("http")
    assert large.startswith("http")


def test_many_tokens_are_checked_on_another_thread(letters, connect, threads):
    names = threads(tokenize, "is_tokens")

    for size in (10, 100_000):
        body = {"model": "letters", "tokens": [97] * size}
        status, found = connect(letters[1]).ask("/detokenize", body)
        assert (status, found) == (200, {"prompt": "a" * size})

    assert [each.startswith("http") for each in names] == [False, True]


def test_the_cosines_of_many_documents_are_computed_on_another_thread(letters, connect, threads):
    names = threads(rerank, "_cosines")

    for count in (10, 1000):
        body = {"model": "vectors", "query": "x", "documents": ["ab"] * count}
        status, found = connect(letters[1]).ask("/v1/rerank", body)
        assert (status, len(found["results"])) == (200, count)

    assert [each.startswith("http") for each in names] == [False, True]


def test_many_large_embeddings_are_written_on_another_thread(letters, connect, threads):
    names = threads(embeddings, "_document")
    asked = connect(letters[1]).ask

    for form in ("float", "base64"):
        body = {"model": "vectors", "encoding_format": form}
        one = asked("/v1/embeddings", {**body, "input": "ab"})[1]["data"][0]
        status, found = asked("/v1/embeddings", {**body, "input": ["ab"] * 1000})

        assert (status, found["object"], len(found["data"])) == (200, "list", 1000)
        assert found["data"][999] == {**one, "index": 999}
        assert found["usage"] == {"prompt_tokens": 3000, "total_tokens": 3000}

    assert [each.startswith("http") for each in names] == [False, True] * 2


def test_a_large_request_that_is_wrong_is_refused_as_a_small_one(letters, connect):
    messages = [{"role": "user", "content": "x" * 100_000}, {"role": "nobody", "content": "x"}]

    status, found = connect(letters[1]).ask(CHAT, {"model": "letters", "messages": messages})

    assert (status, found["error"]["param"]) == (400, "messages[1].role")


def test_large_members_that_a_response_repeats_are_written_once():
    body = {"model": "m", "input": "x", "instructions": "ü" * 20_000, "metadata": {"a": "b"}}
    body["tools"] = [{"type": "function", "name": "add", "parameters": {"type": "object"}}]

    members, request = responses._read(orjson.dumps(body))

    assert {name for name, each in members.items() if type(each) is orjson.Fragment} == {
        "instructions",
        "tools",
    }
    assert request.tools.names == {"add"}
    found, expected = (ResponseEvents("resp_1", each, 1).begin() for each in (members, body))
    assert [sse(each) for each in found] == [sse(each) for each in expected]
