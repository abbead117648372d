"""The processes and threads of instances, their arguments, and instances that stay when others change."""

import asyncio
import json
import os

import numpy as np
import pytest
from backend_python.system import PORTABLE

from core.config import ModelConfig
from core.system.host_policy import HostPolicies

TELLS = """
    def initialize(self, args):
        self.found = {
            "pid": os.getpid(),
            "cores": sorted(os.sched_getaffinity(0)),
            "instances": [g["count"] for g in json.loads(args["model_config"])["instance_group"]],
            **{key: args[f"model_instance_{key}"] for key in ("kind", "device_id", "name")},
        }
        thread = threading.Thread(target=self.look)
        thread.start()
        thread.join()

    def look(self):
        self.found["cores of a thread"] = sorted(os.sched_getaffinity(0))

    def execute(self, requests):
        time.sleep(0.02)
        said = np.array([json.dumps(self.found).encode()], object)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", said)]) for _ in requests]
"""


async def told(model, requests=1):
    """Return the descriptions of the instances that answer so many concurrent requests, by name."""
    inputs = {"x": np.array([b""], object)}
    answers = await asyncio.gather(*(model.ask(inputs) for _ in range(requests)))
    found = [json.loads(each.output("y").array[0]) for each in answers]
    return {each["name"]: each for each in found}


async def change(model, count):
    """Give the model that many instances instead of those that it has."""
    config = ModelConfig()
    config.CopyFrom(model.model.config)
    config.instance_group[0].count = count
    model.model.config = config
    (await model.chain.prepare(model.model)).commit()


async def test_instances_that_stay_keep_their_process(serve, children):
    model = await serve(TELLS, "instance_group [ { count: 2 } ]", datatype="BYTES")
    before = await told(model, 8)

    await change(model, 3)
    during = await told(model, 12)
    await change(model, 1)
    after = await told(model, 4)
    while len(children()) > 1:
        await asyncio.sleep(0.01)

    assert before.keys() == {"m_0_0", "m_0_1"}
    assert during == {**before, "m_0_2": during["m_0_2"]}
    assert during["m_0_2"]["instances"] == [3]
    assert after == {"m_0_0": before["m_0_0"]}
    assert children() == [before["m_0_0"]["pid"]]


async def test_a_leaving_process_answers_its_requests(serve, children):
    model = await serve(TELLS, "instance_group [ { count: 3 } ]", datatype="BYTES")
    waiting = [asyncio.ensure_future(told(model)) for _ in range(30)]
    await asyncio.sleep(0.01)

    await change(model, 1)

    assert len(await asyncio.gather(*waiting)) == 30
    while len(children()) > 1:
        await asyncio.sleep(0.01)


async def test_a_model_that_chooses_its_devices_gets_kind_model(serve):
    model = await serve(TELLS, "instance_group [ { kind: KIND_MODEL } ]", datatype="BYTES")

    (found,) = (await told(model)).values()

    assert (found["kind"], found["device_id"]) == ("MODEL", "0")


async def test_a_passive_instance_has_a_process_and_gets_no_requests(serve, children):
    model = await serve(
        TELLS, "instance_group [ { count: 1 }, { count: 1 passive: true } ]", datatype="BYTES"
    )

    assert (await told(model, 6)).keys() == {"m_0_0"}
    assert len(children()) == 2


@pytest.mark.skipif(PORTABLE, reason="only Linux binds threads to cores")
async def test_a_model_on_the_loop_is_not_bound_and_a_warning_is_logged(serve, caplog):
    before = os.sched_getaffinity(0)
    policies = HostPolicies({"cpu": {"cpu-cores": f"{max(before)}-{max(before)}"}})

    await serve(TELLS, datatype="BYTES", mode="inline", policies=policies)

    assert "host policy 'cpu' has no effect on instance 'm_0'" in caplog.text
    assert os.sched_getaffinity(0) == before


@pytest.mark.skipif(PORTABLE, reason="only Linux binds threads to cores")
@pytest.mark.parametrize("mode", ["process", "thread"])
async def test_a_model_runs_on_the_cores_of_its_host_policy(serve, mode):
    before = os.sched_getaffinity(0)
    core = max(before)
    policies = HostPolicies({"cpu": {"cpu-cores": f"{core}-{core}"}})

    model = await serve(TELLS, datatype="BYTES", mode=mode, policies=policies)
    (found,) = (await told(model)).values()

    assert found["cores"] == found["cores of a thread"] == [core]
    assert os.sched_getaffinity(0) == before
