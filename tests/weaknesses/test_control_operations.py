"""Control operations that a plugin adds: endpoints, roles, restrictions and audit follow from their rows.

No endpoint that is made of a row leads past an option of the server.
"""

import json
import logging

import grpc
import pytest
from google.protobuf.wrappers_pb2 import StringValue

from core.control import OPERATIONS, Area, called_by, change, question
from frontends.http.router import TABLE
from frontends.shared.access.tokens import line_of

WRITE, READ = "/control/note.write", "/control/note.read"
NOTE = {"title": "t", "lines": ["private"]}


@pytest.fixture
def notes():
    """The area of a plugin; no line of a frontend knows it."""

    class NoteControl(Area, name="note"):
        def __init__(self):
            self.notes = {}

        @change("model-repository", subject="note {title}", otherwise="the others keep theirs")
        async def write(self, title: str, lines: list[str]) -> None:
            """Keep a note."""
            if not lines:
                raise RuntimeError("an empty note")
            self.notes[title] = lines

        @question("statistics", lambda results, arguments: results.all()[0])
        async def read(self, title: str = "t", last: int = 9) -> list[str]:
            """Return the lines of a note."""
            return self.notes.get(title, [])[:last]

    yield NoteControl()
    for name in [name for name in OPERATIONS if name.startswith("note.")]:
        del OPERATIONS[name]


@pytest.fixture
def tokens(tmp_path):
    path = tmp_path / "tokens"
    path.write_text("\n".join(line_of(role, [role], role) for role in ("infer", "read", "manage")))
    return str(path)


@pytest.fixture
def audit(caplog):
    """The lines of the audit so far."""
    caplog.set_level(logging.INFO, "core")
    return lambda: [text for text in caplog.messages if text.startswith("audit: ")]


def bearer(role):
    return {"authorization": f"Bearer {role}"} if role else {}


def call(served, operation, arguments=None, metadata=()):
    """Call an operation over gRPC; its result, or the error."""
    request = StringValue(value="" if arguments is None else json.dumps(arguments))
    try:
        answer = served.channel_now().unary_unary(f"/core.control.{operation.replace('.', '/')}")(
            request.SerializeToString(), metadata=tuple(dict(metadata).items()), timeout=30
        )
    except grpc.RpcError as error:
        return error
    return json.loads(StringValue.FromString(answer).value)["result"]


def test_an_operation_of_a_plugin_is_called_over_both_protocols(serve, notes):
    served = serve(areas=[notes])

    assert served.ask("POST", WRITE, NOTE).body == b'{"result":null}'
    assert served.ask("POST", READ, {"title": "t"}).body == b'{"result":["private"]}'
    assert served.ask("GET", READ).body == b'{"result":["private"]}'
    assert served.ask("GET", f"{READ}?title=t&last=0").body == b'{"result":[]}'
    assert call(served, "note.write", {"title": "u", "lines": ["2"]}) is None
    assert call(served, "note.read", {"title": "u"}) == ["2"]
    assert call(served, "note.read") == ["private"]


def test_its_endpoint_is_described(serve, notes):
    paths = json.loads(serve(areas=[notes]).ask("GET", "/openapi.json").body)["paths"]

    assert list(paths[WRITE]) == ["post"]
    assert paths[WRITE]["post"]["summary"] == "Keep a note."
    assert paths[WRITE]["post"]["tags"] == ["model-repository"]
    assert paths[WRITE]["post"]["requestBody"]["content"]["application/json"]["schema"] == {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "lines": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["title", "lines"],
        "additionalProperties": False,
    }
    assert [each["name"] for each in paths[READ]["get"]["parameters"]] == ["title", "last"]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "needs the argument 'title'"),
        (b"{", "Missing a name for object member"),
        (b"[]", "takes its arguments as a JSON object"),
        (b'{"title": "t", "lines": "private"}', "needs array as the argument 'lines', not string"),
        (b'{"title": "t", "lines": [], "other": 1}', "has no argument 'other'"),
    ],
)
def test_wrong_arguments_are_400(serve, notes, body, text):
    served = serve(areas=[notes])
    answer = served.ask("POST", WRITE, body)

    assert answer.status == 400
    assert text in answer.text
    assert notes.notes == {}


def test_wrong_arguments_over_grpc_are_invalid(serve, notes):
    served = serve(areas=[notes])
    path = "/core.control.note/write"

    error = call(served, "note.write", {"title": 1})
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "control operation 'note.write' needs string as the argument 'title'" in error.details()
    for message in (b"\xff", StringValue(value="{").SerializeToString()):
        with pytest.raises(grpc.RpcError) as refused:
            served.channel_now().unary_unary(path)(message, timeout=30)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    too_long = StringValue(value=" " * 2**20).SerializeToString()
    with pytest.raises(grpc.RpcError) as refused:
        served.channel_now().unary_unary(path)(too_long, timeout=30)
    assert "is larger than 1048576 bytes" in refused.value.details()


def test_an_unknown_operation_is_not_found(serve):
    served = serve()

    answer = served.ask("POST", "/control/note.write", {})
    assert answer.status == 404
    assert answer.text.startswith("unknown control operation 'note.write'")
    assert call(served, "note.write").code() is grpc.StatusCode.UNIMPLEMENTED
    assert served.ask("GET", "/control/repository.poll").status == 405
    for path in ("/control/", "/control/repository.poll%20", "/control/repository.pol"):
        assert served.ask("GET", path).text.startswith("unknown control operation"), path
    for path in ("/control", "/control/repository/poll", "/control/repository.poll/"):
        assert served.ask("POST", path).text == "Not Found", path


@pytest.mark.parametrize(
    ("role", "may_read", "may_write"),
    [("", False, False), ("infer", False, False), ("read", True, False), ("manage", True, True)],
)
def test_a_caller_needs_the_role_of_the_category(serve, notes, tokens, role, may_read, may_write):
    served = serve(areas=[notes], auth_tokens=tokens)
    refused = {403 if role else 401}

    def status(method, path, body=None):
        return served.ask(method, path, body, bearer(role)).status

    assert {status("GET", READ), status("POST", READ, {})} == ({200} if may_read else refused)
    assert {status("POST", WRITE, NOTE)} == ({200} if may_write else refused)
    assert (notes.notes != {}) == may_write
    notes.notes.clear()
    assert isinstance(call(served, "note.read", {}, bearer(role)), list) == may_read
    call(served, "note.write", NOTE, bearer(role))
    assert (notes.notes != {}) == may_write


def test_a_restricted_category_restricts_it(serve, notes):
    secret = {"model-repository": ("secret-name", "secret-value")}
    served = serve(areas=[notes], http_restricted_api=secret, grpc_restricted_protocol=secret)

    assert served.ask("POST", WRITE, NOTE).status == 403
    assert "restricted" in call(served, "note.write", NOTE).details()
    assert notes.notes == {}
    assert served.ask("GET", READ).status == 200
    assert served.ask("POST", WRITE, NOTE, {"secret-name": "secret-value"}).status == 200
    prefixed = {"triton-grpc-protocol-secret-name": "secret-value"}
    assert call(served, "note.write", NOTE, prefixed) is None


def test_operations_of_the_protocol_have_no_second_endpoint(serve):
    """So that checks of the protocol's endpoints cannot be gone around."""
    served = serve(allow_client_shm=True, model_control_mode="explicit")

    for name in OPERATIONS:
        if name != "repository.poll":
            assert served.ask("POST", f"/control/{name}", {}).status == 404, name
            assert call(served, name).code() is grpc.StatusCode.UNIMPLEMENTED, name


@pytest.mark.parametrize("mode", ["none", "explicit"])
def test_clients_poll_only_if_the_server_polls(serve, mode):
    served = serve(model_control_mode=mode)
    served.repository.joinpath("new", "1").mkdir(parents=True)

    answer = served.ask("POST", "/control/repository.poll")
    assert answer.status == 503
    assert "--model-control-mode=poll" in answer.text
    assert call(served, "repository.poll").code() is grpc.StatusCode.UNAVAILABLE
    assert served.call(served.server.manager.knows, "new") is False


def test_a_client_polls_for_new_models(serve):
    served = serve(model_control_mode="poll", repository_poll_secs=3600)
    served.repository.joinpath("new", "1").mkdir(parents=True)
    served.repository.joinpath("new", "config.pbtxt").write_text('backend: "test"')

    assert served.ask("POST", "/control/repository.poll").body == b'{"result":null}'
    assert served.ask("GET", "/v2/models/new/ready").status == 200


def test_changes_are_audited(serve, notes, tokens, audit):
    served = serve(areas=[notes], auth_tokens=tokens)

    served.ask("POST", WRITE, NOTE, bearer("manage"))
    served.ask("POST", WRITE, {"title": "t", "lines": []}, bearer("manage"))
    call(served, "note.write", NOTE, bearer("manage"))
    served.ask("POST", "/v2/repository/models/echo/unload", {}, bearer("manage"))
    served.ask("POST", "/v2/logging", {"log_verbose_level": 0}, bearer("manage"))

    by = "by caller 'manage' at 127.0.0.1"
    assert audit() == [
        f"audit: note.write {by} done: note t",
        f"audit: note.write {by} failed (unexpected error): note t",
        f"audit: note.write {by} done: note t",
        f"audit: repository.unload {by} failed (Unavailable): model echo",
        f"audit: settings.change_log_settings {by} done: log log_verbose_level",
    ]
    assert "private" not in "".join(audit())


CHANGES = {
    "repository.load": "/v2/repository/models/echo/load",
    "repository.unload": "/v2/repository/models/echo/unload",
    "settings.change_trace_settings": "/v2/trace/setting",
    "settings.change_log_settings": "/v2/logging",
    "memory.register": "/v2/systemsharedmemory/region/r/register",
    "memory.register_cuda": "/v2/cudasharedmemory/region/r/register",
    "memory.unregister": "/v2/systemsharedmemory/region/r/unregister",
    "memory.unregister_cuda": "/v2/cudasharedmemory/region/r/unregister",
}
BODY = {
    "key": "k",
    "byte_size": 8,
    "raw_handle": {"b64": "A" * 86 + "=="},
}


def test_every_change_of_the_protocol_is_audited(serve, audit):
    served = serve(allow_client_shm=True, model_control_mode="none")
    asked = {route.operation for route in TABLE if route.operation}

    assert set(CHANGES) == {name for name in asked if OPERATIONS[name].changes}
    for name, path in CHANGES.items():
        before = len(audit())
        served.ask("POST", path, BODY if path.endswith("register") else {})
        (line,) = audit()[before:]
        assert line.startswith(f"audit: {name} by 127.0.0.1 "), line


def test_a_change_by_a_model_is_not_one_by_the_caller_that_loaded_it(serve, audit):
    """Tasks of a model begin in the call that loads it, and keep its context."""
    served = serve(model_control_mode="explicit", load_model=["echo"])

    async def unload():
        with called_by("caller 'manage' at 127.0.0.1"):
            await served.server.models.unload("echo")

    served.run(unload())
    assert audit() == ["audit: repository.unload by the server's own process done: model echo"]


def test_questions_and_refused_calls_are_not_audited(serve, notes, tokens, audit):
    served = serve(areas=[notes], auth_tokens=tokens)

    served.ask("POST", WRITE, NOTE, bearer("read"))
    served.ask("POST", WRITE, {"title": 1}, bearer("manage"))
    served.ask("POST", READ, {}, bearer("manage"))
    served.ask("GET", "/v2/logging", None, bearer("manage"))
    call(served, "note.read", {}, bearer("read"))

    assert audit() == []
