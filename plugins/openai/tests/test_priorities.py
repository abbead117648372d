"""The field `priority` of chats and completions is the level of their requests in the queue of the model."""

import pytest
from frontend_openai import service

pytest.importorskip("backend_testing.letters")

CHAT = ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]})
TEXT = ("/v1/completions", {"prompt": "x"})


@pytest.fixture
def submitted(monkeypatch):
    """Return the priorities of the requests that are submitted."""
    found, submit = [], service.submit

    def seen(server, call, request, **kwargs):
        found.append(request.priority)
        return submit(server, call, request, **kwargs)

    monkeypatch.setattr(service, "submit", seen)
    return found


@pytest.fixture
def ask(letters, connect):
    """Return a function that asks a route, and returns the status and the error, None for none."""

    def asked(route, model, **fields):
        path, body = route
        status, found = connect(letters[1]).ask(
            path, {**body, "model": model, "max_tokens": 1, **fields}
        )
        return status, found.get("error")

    return asked


@pytest.mark.parametrize("route", [CHAT, TEXT], ids=["chat", "completion"])
def test_all_texts_have_the_level_of_the_request(ask, submitted, route):
    assert ask(route, "ranked", priority=2, n=2) == (200, None)
    assert ask(route, "ranked", priority=0) == (200, None)
    assert ask(route, "ranked") == (200, None)

    assert submitted == [2, 2, 0, 0]


@pytest.mark.parametrize("route", [CHAT, TEXT], ids=["chat", "completion"])
@pytest.mark.parametrize(
    ("model", "priority", "reason"),
    [
        ("ranked", 3, "3 is not from 0 to 2"),
        ("ranked", -1, "-1 is not from 0 to 2"),
        ("ranked", "high", "expected an integer"),
        ("letters", 1, "the queue of model 'letters' has no levels"),
    ],
)
def test_a_level_that_the_queue_does_not_have_is_refused(
    ask, submitted, route, model, priority, reason
):
    status, error = ask(route, model, priority=priority)

    assert (status, error["param"]) == (400, "priority")
    assert reason in error["message"]
    assert submitted == []


def test_a_model_without_levels_takes_the_default(ask, submitted):
    assert ask(TEXT, "letters", priority=0) == (200, None)
    assert submitted == [0]
