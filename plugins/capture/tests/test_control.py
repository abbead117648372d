"""Captures that operators start and stop while the server runs."""

import json
import urllib.request

from core_capture.records.reader import CaptureReader


def control(client, operation, document=None, headers=None):
    body = None if document is None else json.dumps(document).encode()
    headers = {"Content-Type": "application/json", **(headers or {})}
    url = f"http://{client.url}/control/capture.{operation}"
    request = urllib.request.Request(url, body, headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())["error"]


def status(client):
    (found,) = control(client, "status")[1]["result"]
    return found


def test_start_and_stop(capture, tmp_path):
    client = capture(capture="", capture_live=str(tmp_path / "live"))
    client.infer(1.0)
    assert status(client) == {"running": False, "counts": {}}

    assert control(client, "start", {"name": "noon", "models": ["dou*"], "answers": True})[0] == 200
    client.infer(2.0)
    client.infer(3.0, model="absent")
    found = status(client)
    assert control(client, "stop", {})[0] == 200
    client.infer(4.0)

    assert (found["running"], found["models"], found["rate"]) == (True, ["dou*"], 1.0)
    assert found["folder"] == str(tmp_path / "live" / "noon")
    (record,) = CaptureReader(tmp_path / "live" / "noon").records()
    assert b"2.0" in record.body and record.answer
    after = status(client)
    assert (after["running"], after["counts"]["written"]) == (False, 1)
    # Once more, into another folder.
    assert control(client, "start", {"rate": 1})[0] == 200
    client.infer(5.0)
    control(client, "stop", {})
    assert len(list(CaptureReader(tmp_path / "live").records())) == 1
    assert status(client)["counts"]["written"] == 2


def test_captures_that_follow_within_a_second_share_a_folder(capture, tmp_path):
    client = capture(capture="", capture_live=str(tmp_path / "live"))

    for _ in range(3):
        control(client, "start", {"name": "a"})
        client.infer(1.0)
        control(client, "stop", {})

    assert len(list(CaptureReader(tmp_path / "live" / "a").records())) == 3


def test_wrong_wishes_have_an_answer(capture, tmp_path):
    client = capture(capture="", capture_live=str(tmp_path / "live"))

    for document, text in (
        ({"name": "../x"}, "'../x' is no name of a folder"),
        ({"name": "/etc"}, "is no name of a folder"),
        ({"rate": 0}, "'rate' is 0, expected a number above 0"),
        ({"rate": 2.0}, "'rate' is 2.0"),
        ({"models": [1]}, "models"),
        ({"latency_ms": -1.0}, "'latency_ms' is -1.0"),
    ):
        code, error = control(client, "start", document)
        assert (code, text in error) == (400, True), error
    assert control(client, "start", {})[0] == 200
    code, error = control(client, "start", {})
    assert (code, "is running; stop it first" in error) == (400, True)
    assert control(client, "stop", {})[0] == 200
    assert control(client, "stop", {})[0] == 200


def test_a_server_without_a_folder_starts_none(capture):
    client = capture(capture="")

    code, error = control(client, "start", {})

    assert (code, error) == (
        503,
        "captures need a folder: start the server with --capture-live=FOLDER",
    )


def test_only_operators_start_captures(capture, tmp_path):
    from frontends.shared.access.tokens import line_of

    tokens = tmp_path / "tokens"
    roles = {"op": ["manage"], "look": ["read"], "anna": ["infer"]}
    tokens.write_text("\n".join(line_of(name, each, name) for name, each in roles.items()))
    client = capture(capture="", capture_live=str(tmp_path / "live"), auth_tokens=str(tokens))

    def ask(name, operation, document=None):
        headers = {"Authorization": f"Bearer {name}"}
        return control(client, operation, document, headers)[0]

    assert [ask(name, "start", {}) for name in ("anna", "look", "op")] == [403, 403, 200]
    assert [ask(name, "status") for name in ("anna", "look", "op")] == [403, 200, 200]
