"""Large conversations are read, and made a prompt, outside the event loop: other clients do not wait."""

import threading

import pytest
from frontend_openai import conversation

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


def test_a_large_request_that_is_wrong_is_refused_as_a_small_one(letters, connect):
    messages = [{"role": "user", "content": "x" * 100_000}, {"role": "nobody", "content": "x"}]

    status, found = connect(letters[1]).ask(CHAT, {"model": "letters", "messages": messages})

    assert (status, found["error"]["param"]) == (400, "messages[1].role")
