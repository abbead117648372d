"""JSON of many levels: every route refuses it with the number before anything is done with it."""

import json

import pytest

pytest.importorskip("backend_testing.letters")

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
USER = [{"role": "user", "content": "x"}]
MOST = 128


def nested(levels, inner="1"):
    """Return JSON text of so many levels of lists."""
    return "[" * levels + inner + "]" * levels


def objects(levels):
    return '{"a":' * levels + "1" + "}" * levels


def ask(port, connect, path, body):
    connection = connect(port).begin(path)
    connection.getresponse().read()
    connection.request("POST", path, body)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


HERE = "here"  # stands for JSON text that `json` would not write


def body_of(fields, text):
    return json.dumps({"model": "letters", **fields}).replace(f'"{HERE}"', text)


@pytest.mark.parametrize(
    ("path", "fields", "text"),
    [
        (CHAT, {"messages": HERE}, nested(1000)),
        (CHAT, {"messages": HERE}, nested(300)),
        (CHAT, {"structured_outputs": {"json": HERE}}, objects(300)),
        (RESPONSES, {"input": "x", "metadata": HERE}, objects(300)),
        (MESSAGES, {"max_tokens": 1, "messages": HERE}, nested(1000)),
        ("/v1/embeddings", {"model": "vectors", "input": HERE}, nested(1000)),
        ("/tokenize", {"messages": HERE}, nested(1000)),
    ],
)
def test_a_body_of_many_levels_is_refused_with_their_number(letters, connect, path, fields, text):
    status, found = ask(letters[1], connect, path, body_of(fields, text))

    assert status == 400
    assert f"levels of lists and objects; at most {MOST} are accepted" in found["error"]["message"]


def test_the_bound_is_for_levels_and_not_for_values(letters, connect):
    def status(levels):
        fields = {"messages": USER, "max_tokens": 1, "chat_template_kwargs": {"a": HERE}}
        many = ", ".join(["[]"] * 1000)
        return ask(letters[1], connect, CHAT, body_of(fields, nested(levels - 2, many)))[0]

    assert status(MOST - 1) == 200
    assert status(MOST) == 400


@pytest.mark.parametrize("levels", [200, 1000])
@pytest.mark.parametrize("model", ["caller", "poem"])
def test_arguments_in_a_text_have_the_same_bound(letters, connect, model, levels):
    function = {"name": "f", "arguments": objects(levels)}
    call = {"id": "c", "type": "function", "function": function}
    messages = [*USER, {"role": "assistant", "tool_calls": [call]}]

    status, found = connect(letters[1]).ask(CHAT, {"model": model, "messages": messages})

    assert status == 400
    assert found["error"]["param"] == "messages[1].tool_calls[0].function.arguments"
    assert f"{levels} levels" in found["error"]["message"]


def test_a_schema_in_a_text_has_the_same_bound(letters, connect):
    body = {"model": "letters", "messages": USER, "structured_outputs": {"json": objects(300)}}

    status, found = connect(letters[1]).ask(CHAT, body)

    assert status == 400 and "300 levels" in found["error"]["message"]
