"""Ensembles of a whole InferenceServer: conditions of steps, and steps of every kind of model."""

import numpy as np
import pytest

import core
from core.errors import CoreError
from core.options import Options
from core.request import SEQUENCE_END, SEQUENCE_START, InferenceRequest, RequestedOutput
from core.server import InferenceServer
from core.tensor import Tensor

X = 'input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]'
FLAG = 'input [ { name: "flag" data_type: TYPE_BOOL dims: [ 1 ] } ]'


def out(*names, datatype="FP32", dims="-1"):
    return " ".join(
        f'output [ {{ name: "{name}" data_type: TYPE_{datatype} dims: [ {dims} ] }} ]'
        for name in names
    )


def optional(*names):
    return " ".join(
        f'input [ {{ name: "{name}" data_type: TYPE_FP32 dims: [ -1 ] optional: true }} ]'
        for name in names
    )


MODELS = {
    "add": 'backend: "steps" max_batch_size: 8 dynamic_batching { } ' + X + out("y"),
    "double": 'backend: "steps" max_batch_size: 8 ' + X + out("y"),
    "positive": 'backend: "steps" max_batch_size: 8 ' + X + out("flag", datatype="BOOL", dims="1"),
    "either": 'backend: "steps" max_batch_size: 8 ' + optional("a", "b") + out("y"),
    "each": 'backend: "steps" model_transaction_policy { decoupled: true } ' + X + out("y"),
    "each_sign": 'backend: "steps" model_transaction_policy { decoupled: true } '
    + X
    + out("y")
    + out("flag", datatype="BOOL", dims="1"),
    "plain": 'backend: "steps" ' + X + out("y"),
    "total": 'backend: "steps" max_batch_size: 1 sequence_batching { } ' + X + out("y"),
}


class Stepping(core.ModelInstance):
    """Computes by the name of its model."""

    placement = "inline"
    sum = 0.0

    def execute(self, batch):
        return getattr(self, self.model.name)(batch)

    def add(self, batch):
        return {"y": batch["x"] + 1}

    plain = add

    def double(self, batch):
        return {"y": batch["x"] * 2}

    def positive(self, batch):
        return {"flag": batch["x"].min(axis=1, keepdims=True) > 0}

    def either(self, batch):
        return {"y": batch["a"] if "a" in batch else batch["b"]}

    def each(self, batch):
        for value in batch.requests[0].inputs["x"].array:
            batch.respond(0, {"y": np.array([value], np.float32)}, final=False)
        batch.finish(0)

    def each_sign(self, batch):
        for value in batch.requests[0].inputs["x"].array:
            one = np.array([value], np.float32)
            batch.respond(0, {"y": one, "flag": one > 0}, final=False)
        batch.finish(0)

    def total(self, batch):
        self.sum += float(batch["x"].sum())
        return {"y": np.full_like(batch["x"], self.sum)}


def step(model, takes, gives):
    """takes, gives: "x=a y=b", the model's tensor = the ensemble's."""
    maps = ""
    for field, pairs in (("input_map", takes), ("output_map", gives)):
        for pair in pairs.split():
            theirs, ours = pair.split("=")
            maps += f' {field} {{ key: "{theirs}" value: "{ours}" }}'
    return f'step {{ model_name: "{model}" model_version: -1 {maps} }} '


def when(**conditions):
    """when(s1_if="flag") → the parameter of step 1."""
    return " ".join(
        f'parameters {{ key: "step[{key[1]}].{key[3:]}" value {{ string_value: "{tensor}" }} }}'
        for key, tensor in conditions.items()
    )


@pytest.fixture
async def serve(tmp_path):
    servers = []

    async def start(**ensembles):
        for name, config in {**MODELS, **ensembles}.items():
            (tmp_path / name / "1").mkdir(parents=True)
            (tmp_path / name / "config.pbtxt").write_text(config)
        backend = core.Backend(instance=Stepping)
        backend.name = "steps"
        options = Options.defaults(
            model_repository=[str(tmp_path)], model_control_mode="explicit", exit_on_error=True
        )
        server = InferenceServer(options, find_backend=lambda name: backend)
        servers.append(server)
        await server.start()
        for name in ensembles:
            await server.models.load(name)
        return server

    yield start
    for server in servers:
        await server.stop(30)


def ensemble(io, *steps, more="", batch=8, word='platform: "ensemble"'):
    return f"{word} max_batch_size: {batch} {io} {more} ensemble_scheduling {{ {' '.join(steps)} }}"


def request(values, flag=None, batched=True, name="e", **kwargs):
    inputs = {}
    if values is not None:
        array = np.array(values, np.float32)
        inputs["x"] = Tensor.of("x", array if not batched or array.ndim > 1 else array[None])
    if flag is not None:
        array = np.array(flag, bool).reshape(-1, 1) if batched else np.array([flag])
        inputs["flag"] = Tensor.of("flag", array)
    return InferenceRequest(name, inputs, **kwargs)


async def answer(server, *args, **kwargs):
    found = await server.models.infer(request(*args, **kwargs))
    return {tensor.name: tensor.array.ravel().tolist() for tensor in found.outputs}


IF_ELSE = ensemble(
    X + FLAG + out("yes", "no"),
    step("add", "x=x", "y=yes"),
    step("double", "x=x", "y=no"),
    more=when(s0_if="flag", s1_unless="flag"),
)


async def test_a_step_runs_if_its_condition_is_true_and_else_its_outputs_are_absent(serve):
    server = await serve(e=IF_ELSE)

    assert await answer(server, [5], flag=True) == {"yes": [6]}
    assert await answer(server, [5], flag=False) == {"no": [10]}

    counts = {
        each["name"]: each["inference_count"] for each in server.control.health.statistics_here()
    }
    assert (counts["add"], counts["double"], counts["e"]) == (1, 1, 2)


async def test_a_condition_may_be_an_output_of_another_step(serve):
    server = await serve(
        e=ensemble(
            X + out("z"),
            step("double", "x=x", "y=z0"),
            step("either", "a=z0 b=x", "y=z"),
            step("positive", "x=x", "flag=good"),
            more=when(s0_if="good"),
        )
    )

    assert await answer(server, [3]) == {"z": [6]}
    assert await answer(server, [-3]) == {"z": [-3]}


async def test_an_optional_input_of_a_model_joins_two_ways(serve):
    server = await serve(
        e=ensemble(
            X + FLAG + out("z"),
            step("add", "x=x", "y=a"),
            step("double", "x=x", "y=b"),
            step("either", "a=a b=b", "y=z"),
            more=when(s0_if="flag", s1_unless="flag"),
        )
    )

    assert await answer(server, [5], flag=True) == {"z": [6]}
    assert await answer(server, [5], flag=False) == {"z": [10]}


async def test_a_step_that_needs_an_output_of_a_skipped_step_is_skipped_too(serve):
    server = await serve(
        e=ensemble(
            X + FLAG + out("z", "w"),
            step("add", "x=x", "y=a"),
            step("add", "x=a", "y=b"),
            step("either", "a=b", "y=z"),
            step("double", "x=x", "y=w"),
            more=when(s0_if="flag"),
        )
    )

    assert await answer(server, [1], flag=True) == {"z": [3], "w": [2]}
    assert await answer(server, [1], flag=False) == {"w": [2]}


async def test_a_request_without_any_computed_output_is_an_error_that_names_them(serve):
    server = await serve(e=IF_ELSE)

    with pytest.raises(CoreError) as error:
        await answer(server, [5], flag=False, outputs=(RequestedOutput("yes"),))

    assert error.value.message == (
        "in ensemble 'e', no output was made of those wanted (yes): skipped by condition, or for "
        "want of an input: step 0 (model 'add')"
    )
    assert await answer(server, [5], flag=False) == {"no": [10]}


async def test_a_condition_that_was_left_out_counts_as_false(serve):
    flag = FLAG.replace("dims: [ 1 ]", "dims: [ 1 ] optional: true")
    server = await serve(e=IF_ELSE.replace(FLAG, flag))

    assert await answer(server, [5]) == {"no": [10]}


async def test_rows_of_a_request_take_one_way(serve):
    server = await serve(e=IF_ELSE)

    assert await answer(server, [[5], [6]], flag=[True, True]) == {"yes": [6, 7]}
    with pytest.raises(CoreError) as error:
        await answer(server, [[5], [6]], flag=[True, False])

    assert error.value.message == (
        "in ensemble 'e', step 0 (model 'add'): the condition 'flag' has shape [2, 1] with true and "
        "false; all rows of a request take the same way, so they must be equal"
    )


async def test_each_answer_of_a_decoupled_step_has_its_own_condition(serve):
    server = await serve(
        e=ensemble(
            X + out("z"),
            step("each_sign", "x=x", "y=one flag=good"),
            step("plain", "x=one", "y=z"),
            more=when(s1_if="good"),
            batch=0,
        )
    )

    reply = server.models.infer(request([1, -2, 3, -4], batched=False))

    answers = [each.output("z").array.tolist() async for each in reply]
    assert answers == [[2], [4]]


async def test_a_decoupled_step_that_is_skipped_ends_the_request_without_an_answer(serve):
    server = await serve(
        e=ensemble(
            X + FLAG + out("z"), step("each", "x=x", "y=z"), more=when(s0_if="flag"), batch=0
        )
    )

    skipped = server.models.infer(request([1, 2], flag=False, batched=False))
    ran = server.models.infer(request([1, 2], flag=True, batched=False))

    assert [each async for each in skipped] == []
    assert len([each async for each in ran]) == 2


@pytest.mark.parametrize("kind,shape", [("FP32", "1"), ("BOOL", "2")])
async def test_a_condition_of_another_datatype_or_size_is_refused_at_load(serve, kind, shape):
    flag = FLAG.replace("BOOL", kind).replace("dims: [ 1 ]", f"dims: [ {shape} ]")

    with pytest.raises(CoreError, match=r"in ensemble 'e', step 0 .*condition 'flag' (is|has)"):
        await serve(e=IF_ELSE.replace(FLAG, flag))


@pytest.mark.parametrize("word", ['platform: "ensemble"', 'backend: "ensemble"'])
async def test_an_ensemble_may_be_a_step_of_another(serve, word):
    inner = ensemble(
        X + out("y"), step("add", "x=x", "y=a"), step("double", "x=a", "y=y"), word=word
    )
    outer = ensemble(
        X + out("z"), step("inner", "x=x", "y=a"), step("add", "x=a", "y=z"), word=word
    )
    server = await serve(inner=inner, e=outer)

    assert await answer(server, [3]) == {"z": [9]}


async def test_requests_of_several_ensembles_meet_in_one_batch(serve):
    server = await serve(
        e=ensemble(X + out("z"), step("add", "x=x", "y=z")),
        f=ensemble(X + out("z"), step("add", "x=x", "y=z")),
    )
    model = server.control.health.statistics_here("add")[0]
    assert model["execution_count"] == 0
    blocked = [server.models.infer(request([n], name="ef"[n % 2])) for n in range(6)]

    answers = [(await reply).output("z").array.item() for reply in blocked]

    model = server.control.health.statistics_here("add")[0]
    assert answers == [1, 2, 3, 4, 5, 6]
    assert model["inference_count"] == 6
    assert model["execution_count"] < 6


async def test_a_sequence_goes_through_the_ensemble_to_its_step(serve):
    server = await serve(
        e=ensemble(X + out("z"), step("total", "x=x", "y=z"), batch=1),
    )

    answers = []
    for value, flags in ((1, SEQUENCE_START), (2, 0), (4, SEQUENCE_END)):
        answers.append(await answer(server, [value], correlation_id=7, flags=flags))

    assert answers == [{"z": [1]}, {"z": [3]}, {"z": [7]}]
