"""The response of each path for a loading model."""

import asyncio
import re
import threading

import core


class Gate:
    """Loads wait until it is open."""

    def __init__(self):
        self.reached = asyncio.Event()
        self.open = threading.Event()


def model_behind(gate, loop):
    class Waits(core.Model):
        def load(self):
            loop.call_soon_threadsafe(gate.reached.set)
            assert gate.open.wait(20)

    return Waits


async def test_a_loading_model_is_503_with_its_progress(open_with, document):
    async with open_with(model_control_mode="explicit") as site:
        gate = Gate()
        site.backend.model = model_behind(gate, asyncio.get_running_loop())
        load = asyncio.create_task(site.server.models.load("echo"))
        try:
            await asyncio.wait_for(gate.reached.wait(), 10)
            asked = [
                ("POST", "/v2/models/echo/infer", document(1)),
                ("POST", "/v2/models/echo/versions/1/infer", document(1)),
                ("POST", "/v2/models/echo/generate", {"x": 1}),
                ("GET", "/v2/models/echo", None),
                ("GET", "/v2/models/echo/config", None),
                ("GET", "/v2/models/echo/stats", None),
                ("GET", "/v2/models/echo/ready", None),
            ]
            for method, path, body in asked:
                reply = await site.ask(method, path, body)
                assert reply.status == 503, path
                assert reply.json["error"].startswith("model 'echo' is loading for "), path
                assert reply.json["error"].endswith(
                    " s, 0 of 1 versions loaded: version 1 loads its files; ask again later"
                )
            index = (await site.ask("POST", "/v2/repository/index")).json
            (loading,) = (each for each in index if each["name"] == "echo")
            assert loading["state"] == "LOADING"
            assert re.fullmatch(r"it loads its files, for \d+ s", loading["reason"])
            listed = (await site.ask("GET", "/v2/models")).json["models"]
            (entry,) = (each for each in listed if each["name"] == "echo")
            assert (entry["state"], entry["versions"]) == ("LOADING", [])
            assert re.fullmatch(r"it loads its files, for \d+ s", entry["reason"])
        finally:
            gate.open.set()
            await load

        assert (await site.ask("GET", "/v2/models/echo/ready")).status == 200
        assert (await site.infer("echo", document(1))).status == 200


async def not_ready(site):
    """The response of /v2/health/ready once a load has made the server not ready."""
    reply = await site.ask("GET", "/v2/health/ready")
    assert reply.status == 400
    return reply.json


async def test_a_server_that_is_not_ready_says_what_is_loading_and_for_how_long(open_with):
    async with open_with(model_control_mode="explicit") as site:
        assert (await site.ask("GET", "/v2/health/ready")).body == b""
        gate = Gate()
        site.backend.model = model_behind(gate, asyncio.get_running_loop())
        load = asyncio.create_task(site.server.models.load("echo"))
        try:
            await asyncio.wait_for(gate.reached.wait(), 10)
            found = await not_ready(site)
        finally:
            gate.open.set()
            await load

        assert found["ready"] is False
        (loading,) = found["loading"]
        assert re.fullmatch(r"it loads its files, for \d+ s", loading.pop("reason"))
        assert loading == {"name": "echo", "version": "1"}
        assert (await site.ask("GET", "/v2/health/ready")).body == b""


async def test_health_names_no_model_where_listing_them_is_restricted(open_with):
    restricted = {"model-repository": ("key", "secret")}
    async with open_with(model_control_mode="explicit", http_restricted_api=restricted) as site:
        gate = Gate()
        site.backend.model = model_behind(gate, asyncio.get_running_loop())
        load = asyncio.create_task(site.server.models.load("echo"))
        try:
            await asyncio.wait_for(gate.reached.wait(), 10)
            found = await not_ready(site)
        finally:
            gate.open.set()
            await load

        assert [set(each) for each in found["loading"]] == [{"reason"}]
