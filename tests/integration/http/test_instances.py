"""The number of instances changes under load: every request gets its response."""

import asyncio
import itertools
import json

import pytest

import core

CLIENTS = 8
BETWEEN = 500  # requests from one change to the next


class Threaded(core.ModelInstance):
    """y = x, on a separate thread."""

    def execute(self, batch):
        return {"y": batch["x"]}


class Load:
    """Clients that ask one model without a pause, each for its next number."""

    def __init__(self, site, model, datatype, shape):
        self.answered = 0
        self._site = site
        self._path = f"/v2/models/{model}/infer"
        self._tensor = {"name": "x", "datatype": datatype, "shape": shape}
        self._going = True
        self._values = itertools.count()
        self._tasks = [asyncio.ensure_future(self._ask()) for _ in range(CLIENTS)]

    async def _ask(self):
        connection = await self._site.connect()
        while self._going:
            value = next(self._values)
            data = [value] * self._tensor["shape"][-1]
            reply = await connection.ask(
                "POST", self._path, {"inputs": [{**self._tensor, "data": data}]}
            )
            assert (reply.status, reply.json["outputs"][0]["data"]) == (200, data)
            self.answered += 1

    async def some(self):
        """Let them ask for a while."""
        until = self.answered + BETWEEN
        while self.answered < until and not any(task.done() for task in self._tasks):
            await asyncio.sleep(0.001)

    async def end(self):
        self._going = False
        await asyncio.gather(*self._tasks)


async def shown(site, model):
    reply = await site.ask("GET", f"/v2/models/{model}/config")
    return [group["count"] for group in reply.json["instance_group"]]


@pytest.mark.parametrize("model,datatype,shape", [("echo", "FP32", [1]), ("rows", "INT32", [1, 2])])
@pytest.mark.parametrize("by_override", [False, True], ids=["file", "override"])
async def test_no_request_fails_while_the_number_of_instances_changes(
    open_with, tmp_path, model, datatype, shape, by_override
):
    async with open_with(model_control_mode="explicit", load_model=[model]) as site:
        path = tmp_path / "models" / model / "config.pbtxt"
        written = path.read_text()
        (version,) = site.server.models.versions()
        site.backend.instance = Threaded  # the first one is a coroutine of the loop
        load = Load(site, model, datatype, shape)
        await load.some()

        for count in (4, 2, 1):
            config = (await site.ask("GET", f"/v2/models/{model}/config")).json
            config["instance_group"] = [{"count": count}]
            if by_override:
                body = {"parameters": {"config": json.dumps(config)}}
            else:
                path.write_text(f"{written} instance_group [ {{ count: {count} }} ]")
                body = {}
            reply = await site.ask("POST", f"/v2/repository/models/{model}/load", body)
            assert (reply.status, reply.body) == (200, b"")
            assert await shown(site, model) == [count]
            await load.some()
        await load.end()

        assert list(site.server.models.versions()) == [version]
        assert version.statistics.inference_count == load.answered > 4 * BETWEEN
