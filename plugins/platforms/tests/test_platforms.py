"""The ports of SageMaker and Vertex AI behind the same rules as the port of HTTP."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from core_platforms.sagemaker import SageMakerFrontend
from core_platforms.vertex_ai import VertexAIFrontend
from integration.http.conftest import MODELS, Connection, document, open_site

from core.errors import CoreError
from frontends.shared.access.tokens import line_of

PREDICT, HEALTH = "/p:predict", "/h"
TARGET = "X-Amzn-SageMaker-Target-Model"
REDIRECT = "X-Vertex-Ai-Triton-Redirect"
# What each platform may ask: method, path, headers, category.
OF_SAGEMAKER = [
    ("GET", "/ping", {}, "health"),
    ("POST", "/invocations", {}, "inference"),
    ("GET", "/models", {}, "model-repository"),
    ("POST", "/models", {}, "model-repository"),
    ("GET", "/models/1f", {}, "model-repository"),
    ("DELETE", "/models/1f", {}, "model-repository"),
    ("POST", "/models/1f/invoke", {}, "inference"),
]
OF_VERTEX_AI = [
    ("GET", HEALTH, {}, "health"),
    ("POST", PREDICT, {}, "inference"),
    *(
        ("POST", PREDICT, {REDIRECT: path}, category)
        for path, category in [
            ("v2/models/echo/infer", "inference"),
            ("v2/models/echo/generate", "inference"),
            ("v2", "metadata"),
            ("v2/health/ready", "health"),
            ("v2/models/echo/ready", "health"),
            ("v2/models/echo/config", "model-config"),
            ("v2/models/stats", "statistics"),
            ("v2/repository/index", "model-repository"),
            ("v2/systemsharedmemory/status", "shared-memory"),
        ]
    ),
]


class Platform:
    """A site, and the port of a platform beside it."""

    def __init__(self, site, frontend):
        self.site = site
        self.frontend = frontend

    async def ask(self, method, path, body=None, headers=()):
        streams = await asyncio.open_connection("127.0.0.1", self.frontend.port)
        self.site.connections.append(Connection(*streams))
        return await self.site.connections[-1].ask(method, path, body, headers)


@pytest.fixture
def open_with(tmp_path, monkeypatch):
    """`async with open_with(frontend, …) as platform`; SageMaker unpacks below tmp_path/unpacked."""
    monkeypatch.setenv("AIP_PREDICT_ROUTE", PREDICT)
    monkeypatch.setenv("AIP_HEALTH_ROUTE", HEALTH)

    @asynccontextmanager
    async def opened(kind, **options):
        chosen = {
            "model_control_mode": "explicit",
            "load_model": ["echo"],
            "sagemaker_port": 0,
            "vertex_ai_port": 0,
            **options,
        }
        more = {"root": str(tmp_path / "unpacked")} if kind is SageMakerFrontend else {}
        async with open_site(tmp_path / "models", **chosen) as site:
            frontend = kind(site.server, **more)
            await frontend.start()
            try:
                yield Platform(site, frontend)
            finally:
                await frontend.stop(5)

    return opened


@pytest.fixture
def unpacked(tmp_path):
    """The url of a model that SageMaker has unpacked."""

    def write(label, model="echo"):
        folder = tmp_path / "unpacked" / label / "model"
        (folder / "anything" / "1").mkdir(parents=True)
        (folder / "anything" / "config.pbtxt").write_text(MODELS[model])
        return str(folder)

    return write


CASES = pytest.mark.parametrize(
    ("kind", "asked"), [(SageMakerFrontend, OF_SAGEMAKER), (VertexAIFrontend, OF_VERTEX_AI)]
)


async def statuses(platform, asked, more):
    return {
        (category, path, *headers.values()): (
            await platform.ask(method, path, b"{}", {**headers, **more})
        ).status
        for method, path, headers, category in asked
    }


@CASES
async def test_every_path_can_be_restricted(open_with, kind, asked):
    rules = {category: ("Key", "s") for *_, category in asked}

    async with open_with(kind, http_restricted_api=rules) as platform:
        assert set((await statuses(platform, asked, {})).values()) == {403}
        assert set((await statuses(platform, asked, {"Key": "t"})).values()) == {403}
        assert 403 not in (await statuses(platform, asked, {"Key": "s"})).values()


@CASES
async def test_callers_must_be_known_and_have_the_permissions_of_their_role(
    open_with, tmp_path, kind, asked
):
    tokens = tmp_path / "tokens"
    tokens.write_text("\n".join(line_of(role, [role], role) for role in ("infer", "manage")))

    async with open_with(kind, auth_tokens=str(tokens)) as platform:
        nobody = await statuses(platform, asked, {})
        found = {
            role: await statuses(platform, asked, {"Authorization": f"Bearer {role}"})
            for role in ("infer", "manage")
        }

    assert {key[0] for key, status in nobody.items() if status != 401} == {"health"}
    for key, status in found["infer"].items():
        assert (status == 403) == (key[0] in ("model-repository", "statistics")), key
    for key, status in found["manage"].items():
        assert (status == 403) == (key[0] == "inference"), key


@CASES
async def test_a_body_that_is_too_large_is_refused(open_with, kind, asked):
    async with open_with(kind, http_max_input_size=100) as platform:
        for path in {path for method, path, *_ in asked if method == "POST"}:
            answer = await platform.ask("POST", path, b" " * 101)
            assert (answer.status, "101" in answer.json["error"]) == (400, True), path


async def test_requests_have_lines_in_the_access_log(open_with, tmp_path):
    log = tmp_path / "access.log"
    async with open_with(SageMakerFrontend, access_log=str(log)) as platform:
        await platform.ask("POST", "/invocations", document(1, id="mine"))

    (line,) = map(json.loads, log.read_text().splitlines())
    assert (line["path"], line["model"], line["id"]) == ("/invocations", "echo", "mine")


async def test_unknown_values_of_variables_end_the_start(open_with, monkeypatch):
    async with open_with(SageMakerFrontend) as platform:
        for name, value in [("PING_MODE", "maybe"), ("INFERENCE_TYPE", "guess")]:
            with monkeypatch.context() as patched:
                patched.setenv(f"SAGEMAKER_TRITON_{name}", value)
                with pytest.raises(CoreError, match=f"{name} is '{value}', expected one of"):
                    await SageMakerFrontend(platform.site.server).start()


@pytest.mark.parametrize("name", ["AIP_PREDICT_ROUTE", "AIP_HEALTH_ROUTE"])
async def test_vertex_ai_requires_its_path_variables(open_with, monkeypatch, name):
    monkeypatch.delenv(name)

    with pytest.raises(CoreError, match=f"{name} is not defined"):
        async with open_with(VertexAIFrontend):
            pass


async def test_paths_of_vertex_ai_are_no_patterns(open_with, monkeypatch):
    monkeypatch.setenv("AIP_PREDICT_ROUTE", "/a.c(x)+")

    async with open_with(VertexAIFrontend) as platform:
        assert (await platform.ask("POST", "/a.c(x)+", document(1))).status == 200
        assert (await platform.ask("POST", "/abcxx", document(1))).status == 400


async def test_requests_that_name_no_model_need_one_that_serves_alone(open_with):
    async with open_with(SageMakerFrontend) as platform:
        answer = await platform.ask("POST", "/invocations", document(1))
        assert answer.json["outputs"][0]["data"] == [1]

        await platform.site.server.control.repository.load("half", {})
        answer = await platform.ask("POST", "/invocations", document(1))

    assert answer.status == 400
    assert (
        "(found: echo, half); name it with the variable SAGEMAKER_TRITON_DEFAULT"
        in (answer.json["error"])
    )


async def test_vertex_ai_is_not_healthy_without_its_default_model(open_with):
    async with open_with(VertexAIFrontend, vertex_ai_default_model="half") as platform:
        assert (await platform.ask("GET", HEALTH)).status == 400
        await platform.site.server.control.repository.load("half", {})
        assert (await platform.ask("GET", HEALTH)).status == 200


async def test_a_redirected_request_may_generate(open_with):
    async with open_with(VertexAIFrontend) as platform:
        headers = {REDIRECT: "v2/models/echo/generate"}
        answer = await platform.ask("POST", PREDICT, {"x": [1.0]}, headers)

    assert answer.json["y"] == 1.0


async def test_a_target_with_a_slash_is_a_name_of_a_model(open_with, unpacked):
    async with open_with(SageMakerFrontend) as platform:
        body = {"model_name": "1f", "url": unpacked("1f")}
        target = {TARGET: "team/50%.tar.gz"}
        assert (await platform.ask("POST", "/models", body, target)).status == 200

        answer = await platform.ask("POST", "/models/1f/invoke", document(1))
        assert answer.json["model_name"] == "team%2F50%25.tar.gz"
        ready = await platform.site.ask("GET", "/v2/models/team%2F50%25.tar.gz/ready")
        assert ready.status == 200


async def test_only_models_that_serve_are_listed(open_with, unpacked):
    async with open_with(SageMakerFrontend) as platform:
        for label in ("1f", "2e"):
            await platform.ask("POST", "/models", {"model_name": label, "url": unpacked(label)})
        await platform.site.server.control.repository.unload("1f")

        listed = (await platform.ask("GET", "/models")).json["models"]
        one = await platform.ask("GET", "/models/1f")

    assert [each["modelName"] for each in listed] == ["2e"]
    assert one.status == 200


async def test_of_loads_of_one_model_at_a_time_one_is_done(open_with, unpacked):
    body = {"model_name": "1f", "url": unpacked("1f")}

    async with open_with(SageMakerFrontend) as platform:
        asked = [platform.ask("POST", "/models", body) for _ in range(5)]
        found = sorted([answer.status for answer in await asyncio.gather(*asked)])

        assert found == [200, 409, 409, 409, 409]
        assert (await platform.ask("POST", "/models/1f/invoke", document(1))).status == 200


async def test_a_name_that_a_repository_has_is_taken(open_with, unpacked):
    body = {"model_name": "1f", "url": unpacked("1f")}

    async with open_with(SageMakerFrontend) as platform:
        answer = await platform.ask("POST", "/models", body, {TARGET: "half"})
        assert (answer.status, answer.json["error"]) == (409, "there is a model 'half' already")
        assert (await platform.ask("POST", "/models", body)).status == 200


async def test_binary_tensors_have_the_bound_of_bodies_and_json_that_of_json(open_with):
    request = {"name": "x", "datatype": "FP32", "shape": [1000]}
    head = json.dumps({"inputs": [{**request, "parameters": {"binary_data_size": 4000}}]}).encode()
    kind = f"application/vnd.sagemaker-triton.binary+json;json-header-size={len(head)}"
    small = {"Inference-Header-Content-Length": "1"}

    async with open_with(SageMakerFrontend, http_max_input_size=1000) as platform:
        for path, body, headers, status in [
            ("/invocations", head + bytes(4000), {"Content-Type": kind}, 200),
            ("/invocations", head + bytes(4000), {}, 400),
            ("/invocations", b" " * 1001, small, 400),
            ("/models", b" " * 1001, small, 400),
        ]:
            answer = await platform.ask("POST", path, body, headers)
            assert answer.status == status, (path, answer.body)
            assert status == 200 or "maximum" in answer.json["error"]


async def test_texts_of_a_client_do_not_look_like_a_memory_error(open_with, unpacked):
    async with open_with(SageMakerFrontend) as platform:
        for body in ({"model_name": "OOM", "url": "/MemoryError"}, b"{ out of memory"):
            assert (await platform.ask("POST", "/models", body)).status == 400

        await platform.ask("POST", "/models", {"model_name": "1f", "url": unpacked("1f")})
        asked = document(1, outputs=[{"name": "MemoryError"}])
        answer = await platform.ask("POST", "/models/1f/invoke", asked)

    assert (answer.status, "MemoryError" in answer.json["error"]) == (400, True)


@pytest.mark.parametrize("label", ["a b", "\u00e9", "a\n", "a/b", "l" * 256, ""])
async def test_a_hash_that_no_path_can_name_is_refused(open_with, unpacked, label):
    async with open_with(SageMakerFrontend) as platform:
        answer = await platform.ask("POST", "/models", {"model_name": label, "url": unpacked("1")})

        assert (answer.status, platform.site.server.control.repository.joined()) == (400, [])


async def test_a_caller_of_health_does_not_see_models(open_with):
    async with open_with(VertexAIFrontend, load_model=["echo", "half"]) as platform:
        answer = await platform.ask("GET", HEALTH)

    assert (answer.status, answer.body) == (400, b"")


async def test_a_model_that_is_still_loading_is_not_found(open_with, unpacked, monkeypatch):
    async with open_with(SageMakerFrontend) as platform:
        server = platform.site.server
        there, go_on = asyncio.Event(), asyncio.Event()
        load = server.manager.joining._load

        async def slowly(name, override):
            there.set()
            await go_on.wait()
            await load(name, override)

        monkeypatch.setattr(server.manager.joining, "_load", slowly)
        body = {"model_name": "1f", "url": unpacked("1f")}
        loading = asyncio.ensure_future(platform.ask("POST", "/models", body))
        await there.wait()
        found = [
            (await platform.ask("GET", "/models/1f")).status,
            (await platform.ask("POST", "/models/1f/invoke", document(1))).status,
        ]
        go_on.set()

        assert (await loading).status == 200
        assert found == [404, 404]
