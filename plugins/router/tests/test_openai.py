"""OpenAI's routes through the router: the model is in the body, or a name with slashes in the path."""

import json
import socket
from functools import partial

import pytest
from core_router.combined import merged_list
from routing.requests import ask, until
from routing.running import said


def of(model):
    """Return a script that answers requests for one model only."""

    async def answer(reader, writer, line, body):
        has = json.dumps(f"{model}").encode() in body
        writer.write(said(f"{model} {len(body)}".encode() if has else b"{}", 200 if has else 404))

    return answer


@pytest.fixture
def two(scripted, route):
    """Return a function that makes a router before two servers, each with a model: a, and b."""

    def make(limits=None):
        servers = [scripted(of(name)) for name in ("a", "b")]
        for each, name in zip(servers, ("a", "b"), strict=True):
            each.index = [{"name": name, "version": "1", "state": "READY"}]
        return servers, route([each.name for each in servers], limits)

    return make


def chat(model, size):
    """Return a request with an image of `size` bytes before its model."""
    image = {"type": "image_url", "image_url": {"url": "data:," + "x" * size}}
    return {"messages": [{"role": "user", "content": [image]}], "model": model}


def test_a_large_body_reaches_a_server_with_its_model(two):
    _, router = two({"kept_body_bytes": 1000})

    for model in "abababab":
        reply = ask(router.port, "/v1/chat/completions", chat(model, 3_000_000))
        assert (reply.status, reply.body[:1]) == (200, model.encode())

    assert router.metric("core_router_kept_bytes") == 0


def test_a_body_without_room_is_refused_if_its_model_decides(two):
    servers, router = two({"kept_bytes": 100_000})

    reply = ask(router.port, "/v1/chat/completions", chat("a", 1_000_000))

    assert reply.status == 413
    assert "--kept-bytes=100000" in reply.json["error"]
    assert not any(each.requests for each in servers)
    assert ask(router.port, "/v1/chat/completions", chat("a", 50_000)).status == 200


def test_bytes_that_have_not_come_take_no_room(two):
    _, router = two({"kept_bytes": 1_000_000, "kept_body_bytes": 1_000_000})
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: r\r\nContent-Length: 900000\r\n\r\n{"

    with socket.create_connection(("127.0.0.1", router.port)) as slow:
        slow.sendall(head)
        until(lambda: router.metric("core_router_kept_bytes") == 1)
        reply = ask(router.port, "/v1/chat/completions", chat("a", 800_000))

    assert reply.status == 200


def test_a_body_for_which_there_is_no_room_now_may_be_sent_again(two):
    _, router = two({"kept_bytes": 1_000_000, "kept_body_bytes": 1_000_000})
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: r\r\nContent-Length: 900000\r\n\r\n"

    with socket.create_connection(("127.0.0.1", router.port)) as slow:
        slow.sendall(head + b" " * 500_000)
        until(lambda: router.metric("core_router_kept_bytes") >= 500_000)
        reply = ask(router.port, "/v1/chat/completions", chat("a", 800_000))

    assert reply.status == 503
    assert "--kept-bytes=1000000" in reply.json["error"]


@pytest.mark.parametrize(
    "answers,merged",
    [
        ([{"models": ["b"]}, {"models": ["a", "b"]}], {"models": ["a", "b"]}),
        ([{"data": [{"id": "m"}]}, {"models": ["a"]}], {"object": "list", "data": [{"id": "m"}]}),
        (
            [{"data": 5}, {"data": [{}, 7, {"id": "m"}]}, []],
            {"object": "list", "data": [{"id": "m"}]},
        ),
    ],
)
def test_lists_of_other_forms_are_merged_too(answers, merged):
    assert merged_list(answers) == merged


def test_a_body_without_room_passes_if_all_servers_have_the_same_models(scripted, route):
    router = route([scripted(of("m")).name for _ in range(2)], {"kept_bytes": 100_000})

    assert ask(router.port, "/v1/chat/completions", chat("m", 1_000_000)).status == 200


def test_the_form_of_a_transcription_reaches_a_server_with_its_model(two):
    _, router = two()
    form = b'--x\r\nContent-Disposition: form-data; name="model"\r\n\r\n"%b"\r\n--x--\r\n'
    headers = {"Content-Type": "multipart/form-data; boundary=x"}

    for model in (b"a", b"b") * 4:
        body = form.replace(b'"%b"', model) + b'"%b"' % model  # an epilogue, for the script
        reply = ask(router.port, "/v1/audio/transcriptions", body, headers=headers)
        assert (reply.status, reply.body[:1]) == (200, model)


@pytest.mark.parametrize("action", ["load", "unload"])
def test_all_servers_load_and_unload(two, action):
    servers, router = two()
    path = f"/v1/models/org/new/{action}"

    reply = ask(router.port, path, {"names": ["a", "b"]})

    assert reply.status == 200
    assert [each.requests for each in servers] == [[f"POST {path} HTTP/1.1"]] * 2


def test_a_name_with_slashes_reaches_its_server(two):
    servers, router = two()
    servers[1].index = [{"name": "org/m", "version": "1", "state": "READY"}]
    until(lambda: "org/m" in router.router.table.servers[servers[1].name].models)

    for _ in range(6):
        ask(router.port, "/v1/models/org/m")

    assert not servers[0].requests and len(servers[1].requests) == 6


def test_the_list_has_the_models_of_all_servers(two):
    servers, router = two()

    async def listed(reader, writer, line, body, models=()):
        entries = [{"id": name, "object": "model", "created": 1} for name in models]
        writer.write(said(json.dumps({"object": "list", "data": entries}).encode()))

    servers[0].respond = partial(listed, models=("a", "both"))
    servers[1].respond = partial(listed, models=("both", "b"))

    found = ask(router.port, "/v1/models").json

    assert found["object"] == "list"
    assert sorted(each["id"] for each in found["data"]) == ["a", "b", "both"]
