"""Large conversations are read, and made a prompt, outside the event loop: other clients do not wait."""

import threading

import pytest
from frontend_openai import conversation, document, embeddings, rerank, sampling, tokenize

pytest.importorskip("backend_testing.letters")

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
TOKENIZE, COUNT = "/tokenize", "/v1/messages/count_tokens"


@pytest.fixture
def rendering(monkeypatch):
    """Return the names of the threads that have applied a chat template."""
    names, render = [], conversation.render

    def seen(*args, **kwargs):
        names.append(threading.current_thread().name)
        return render(*args, **kwargs)

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
