"""A server with fair shares, in this process: settings, control operations, ensembles, metrics, loads."""

import asyncio
import json

import core_fairness
import numpy as np
import pytest

import core
from core import plugins
from core.errors import CoreError
from core.options import Options
from core.request import InferenceRequest
from core.server import InferenceServer
from core.tensor import Tensor
from frontends.shared.access.caller_names import CallerNames

CONFIG = """
backend: "waits"
max_batch_size: 4
dynamic_batching {}
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""
ENSEMBLE = """
platform: "ensemble"
max_batch_size: 4
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
ensemble_scheduling {
  step [
    { model_name: "a" input_map { key: "x" value: "x" } output_map { key: "y" value: "z" } },
    { model_name: "b" input_map { key: "x" value: "z" } output_map { key: "y" value: "y" } }
  ]
}
"""


class Waits(core.ModelInstance):
    """Adds 1, after 5 ms."""

    async def execute(self, batch):
        await asyncio.sleep(0.005)
        return {"y": batch["x"] + 1}


@pytest.fixture
async def serve(tmp_path):
    """Start a server with the models a and b, and the ensemble e, until the end of the test."""
    servers = []
    backend = core.Backend(instance=Waits)

    async def start(*, models="ab", **flags):
        for name in models:
            folder = tmp_path / "models" / name / "1"
            folder.mkdir(parents=True, exist_ok=True)
            text = ENSEMBLE if name == "e" else CONFIG
            (folder.parent / "config.pbtxt").write_text(text)
        options = Options.defaults(
            model_repository=[str(tmp_path / "models")],
            model_control_mode="explicit",
            load_model=["*"],
            exit_on_error=False,
        )
        options.added.update(flags)
        server = InferenceServer(options, find_backend={"waits": backend}.get)
        servers.append(server)
        plugins.ask("core_server_starting", server=server)
        await server.start()
        return server

    yield start
    for server in servers:
        await server.stop(30)
        plugins.tell("core_server_stopping", server=server)
    assert not core_fairness._servers


def ask(server, caller="alice", model="a", value=1.0):
    request = InferenceRequest(model, {"x": Tensor.of("x", np.full((1, 1), value, np.float32))})
    if caller:
        request.caller = CallerNames.of(server).number(caller)
    return server.models.infer(request)


async def flood(server, caller, count, model="a"):
    return await asyncio.gather(*(ask(server, caller, model) for _ in range(count)))


def area(server):
    return server.control.areas["fairness"]


async def counts(server, model="a", field="requests"):
    (entry,) = await area(server).show(model)
    return {each["caller"]: each[field] for each in entry["callers"]}


def state_of(server):
    return core_fairness._servers[id(server.models)]


def queues(server):
    return state_of(server).queues


async def error_of(work):
    with pytest.raises(CoreError) as caught:
        await work
    return caught.value.message


async def test_without_flags_nothing_is_in_the_way(serve):
    server = await serve()

    assert "fairness" not in server.control.areas
    assert not CallerNames.of(server).wanted
    version = server.manager.resolve("a")
    assert len(version.chain.handlers) == 1


async def test_only_the_models_of_the_flag_have_a_fair_queue(serve):
    server = await serve(fair=["a"])

    assert [each.name for each in queues(server).values()] == ["a"]
    assert len(server.manager.resolve("b").chain.handlers) == 1
    assert await error_of(area(server).show("b")) == (
        "model 'b' has no fair queue; start the server with --fair=b, and load the model"
    )


async def test_counts_by_caller(serve):
    server = await serve(fair=["*"])

    await asyncio.gather(flood(server, "alice", 30), flood(server, "bob", 10))

    assert await counts(server) == {"alice": 30, "bob": 10}
    assert await counts(server, field="share") == {"alice": 0.75, "bob": 0.25}
    assert await counts(server, field="waiting") == {"alice": 0, "bob": 0}
    assert (await counts(server, field="wait_s"))["alice"] > 0


async def test_flags_set_weights_and_bounds(serve):
    server = await serve(
        fair=["*"], fair_weight=["alice=3", "a=b=0.5"], fair_default_weight=2.0, fair_max_waiting=7
    )

    assert area(server).settings() == {
        "source": "flags",
        "weights": {"a=b": 0.5, "alice": 3.0},
        "default_weight": 2.0,
        "max_waiting": 7,
    }
    await flood(server, "bob", 3)
    assert await counts(server, field="weight") == {"bob": 2.0}


async def test_a_control_call_changes_weights_of_callers_that_wait(serve):
    server = await serve(fair=["*"])
    replies = asyncio.ensure_future(flood(server, "alice", 40))
    await asyncio.sleep(0)

    undo = state_of(server).weigh("alice", 5, "")
    assert await counts(server, field="weight") == {"alice": 5.0}
    undo()
    assert await counts(server, field="weight") == {"alice": 1.0}
    await area(server).weigh("alice", 4, "a")
    await area(server).weigh("alice", 2)

    assert await counts(server, field="weight") == {"alice": 4.0}
    await flood(server, "alice", 1, "b")
    assert await counts(server, "b", field="weight") == {"alice": 2.0}
    await area(server).weigh("alice", None, "a")
    assert await counts(server, field="weight") == {"alice": 2.0}
    await area(server).reset()
    assert area(server).settings()["source"] == "flags"
    await replies


async def test_all_settings_are_replaced_and_undone(serve):
    server = await serve(fair=["*"])
    before = area(server).settings()
    wanted = {"weights": {"bob": 2}, "models": {"a": {"max_waiting": 3}}}

    assert await area(server).set(wanted) == {
        "weights": {"bob": 2.0},
        "default_weight": 1.0,
        "max_waiting": 0,
        "models": {"a": {"max_waiting": 3}},
    }
    assert area(server).settings()["source"] == "control"
    await area(server).reset()
    undo = state_of(server).set(wanted)
    undo()
    assert area(server).settings() == before


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"wieghts": {}}, "has no field 'wieghts'; did you mean 'weights'?"),
        ({"weights": {"bob": 0}}, "fairness: weights['bob'] is 0, expected a number from 0.001"),
        ({"weights": []}, "fairness: weights is [], expected caller and weight"),
        ({"default_weight": "high"}, "fairness: default_weight is 'high', expected a number"),
        ({"max_waiting": 1.5}, "fairness: max_waiting is 1.5, expected a number from 0"),
        ({"models": {"a": {"unit": "bytes"}}}, "unit is 'bytes', expected one of auto, rows"),
        ({"models": 1}, "fairness: models is 1, expected an object"),
        ({"groups": {"g": {"models": {}}}}, "groups['g'] models is {}, expected an object"),
        ({"groups": {"g": {"models": {"a": 1}, "at_once": 0}}}, "at_once is 0, expected"),
        (
            {"groups": {"g": {"models": {"a": 1}}, "h": {"models": {"a": 1}}}},
            "model 'a' is in the groups 'g' and 'h'",
        ),
        ({"groups": {"g": {"models": {"a": 1}}}}, "model 'a' is in no group and would be in group"),
    ],
)
async def test_wrong_settings_change_nothing_and_name_the_field(serve, settings, text):
    server = await serve(fair=["*"])
    before = area(server).settings()

    assert text in await error_of(area(server).set(settings))
    assert area(server).settings() == before


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ({"fair": ["*"], "fair_weight": ["alice"]}, "--fair-weight=alice: expected CALLER=WEIGHT"),
        ({"fair": ["*"], "fair_weight": ["alice=x"]}, "the weight is 'x', expected a number"),
        ({"fair_models": ["gpu0"]}, "--fair-models=gpu0: expected GROUP:MODEL=WEIGHT"),
        ({"fair_models": ["g:a=1,a=2"]}, "'a=2' names no model, or one twice"),
        ({"fair": ["*"], "fair_settings": "/no/such"}, "/no/such cannot be read: No such file"),
    ],
)
async def test_wrong_flags_stop_the_start(serve, flags, text):
    assert text in await error_of(serve(**flags))


async def test_the_file_is_read_again_when_it_changes(serve, tmp_path):
    from frontends.shared.context import context_of

    path = tmp_path / "fair.json"
    path.write_text(json.dumps({"weights": {"alice": 2}}))
    server = await serve(fair=["*"], fair_settings=str(path), fair_max_waiting=9)
    await flood(server, "alice", 1)
    assert area(server).settings()["max_waiting"] == 9
    assert await counts(server, field="weight") == {"alice": 2.0}

    path.write_text('{"weights": {"alice": 20}}')
    context_of(server).files.look()
    assert await counts(server, field="weight") == {"alice": 20.0}
    path.write_text('{"weights": {"alice": ')
    context_of(server).files.look()
    assert await counts(server, field="weight") == {"alice": 20.0}


async def test_steps_of_an_ensemble_count_for_the_caller_of_the_ensemble(serve):
    server = await serve(models="abe", fair=["*"])

    found = await flood(server, "alice", 10, "e")

    assert [each.outputs[0].array.item() for each in found] == [3.0] * 10
    assert await counts(server, "a") == await counts(server, "b") == {"alice": 10}


async def test_an_ensemble_of_models_of_one_group_never_waits_for_itself(serve):
    server = await serve(models="abe", fair=["*"], fair_models=["cpu:a=1,b=1"])

    await asyncio.wait_for(
        asyncio.gather(flood(server, "alice", 40, "e"), flood(server, "bob", 40, "e")), 20
    )

    (group,) = state_of(server)._groups.values()
    assert not group.inside and not group.open
    assert [each.straight for each in queues(server).values()] == [0, 0]


async def test_models_of_a_group_without_fair_callers_take_turns(serve):
    server = await serve(fair_models=["cpu:a=1,b=3"])

    await asyncio.gather(flood(server, "alice", 20, "a"), flood(server, "bob", 20, "b"))

    assert await counts(server, "a") == {"all callers": 20}
    assert [each["group"] for each in await area(server).show()] == ["cpu", "cpu"]


async def test_a_loaded_model_keeps_its_group(serve):
    server = await serve(fair=["*"], fair_models=["cpu:a=1,b=1"])

    assert (
        "' is in group 'cpu' and would be in no group; a model changes its group only while it is not loaded"
    ) in await error_of(area(server).set({"weights": {}}))
    await area(server).set({"groups": {"cpu": {"models": {"a": 1, "b": 5}, "at_once": 2}}})
    (group,) = state_of(server)._groups.values()
    weights = {each.queue.name: each.weight for each in group.members}
    assert (group.at_once, weights) == (2, {"a": 1, "b": 5})


async def test_a_file_that_cannot_be_put_in_force_is_not_what_a_reset_goes_back_to(serve, tmp_path):
    from frontends.shared.context import context_of

    path = tmp_path / "fair.json"
    path.write_text('{"weights": {"alice": 2}}')
    server = await serve(fair=["*"], fair_settings=str(path))
    path.write_text('{"weights": {"alice": 20}, "groups": {"g": {"models": {"a": 1}}}}')
    context_of(server).files.look()

    await area(server).reset()

    assert area(server).settings()["weights"] == {"alice": 2.0}


async def test_a_model_that_loads_keeps_its_group_too(serve):
    server = await serve(models="a", fair=["*"], fair_models=["cpu:a=1,b=1"])
    state = state_of(server)
    (version,) = state.queues
    queue = state._made[version.model] = state.queues.pop(version)  # as before it is ready

    error = await error_of(area(server).set({"weights": {}}))
    state.queues[version] = state._made.pop(version.model)

    assert queue.member.group.name == "cpu" and "would be in no group" in error


async def test_models_that_load_and_unload_leave_nothing(serve):
    server = await serve(fair=["*"], fair_models=["cpu:a=1,b=1"])
    state = state_of(server)
    for _ in range(3):
        replies = asyncio.ensure_future(flood(server, "alice", 20))
        await asyncio.sleep(0.001)
        await server.models.load("a")
        await replies

    assert len(state.queues) == 2 and not state._made
    assert [len(each.members) for each in state._groups.values()] == [2]
    await server.models.unload("a")
    while len(state.queues) > 1:
        await asyncio.sleep(0.005)
    assert [each.name for each in state.queues.values()] == ["b"]


async def test_callers_beyond_the_bounds_of_statistics_and_metrics_share_one_entry(serve):
    options = object()
    source = core_fairness.core_open_metric_source(options)
    server = await serve(fair=["*"], fair_weight=["named=2"])
    source.queues = queues(server).values()

    for i in range(1100):
        await ask(server, f"caller{i}") if i % 100 == 0 else ask(server, f"caller{i}")
    await ask(server, "named")
    while any((await counts(server, field="in_flight")).values()):
        await asyncio.sleep(0.01)

    found = await counts(server)
    assert len(found) == 101 and sum(found.values()) == 1101
    assert len(next(iter(queues(server).values())).callers) <= 1001
    family = {each.name: each for each in source.families()}["core_fair_requests"]
    samples = [each for each in family.samples if each.labels["model"] == "a"]
    through = {s.labels["caller"]: s.value for s in samples if s.labels["result"] == "through"}
    assert len(through) == 22 and "named" in through and sum(through.values()) == 1101
