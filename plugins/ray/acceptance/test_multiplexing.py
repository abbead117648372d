"""More models than memory in the replicas: the account unloads, Serve's model ids find what is loaded.

docs/operate/ray.md has it under "Models by their id".
"""

import os
import time

import numpy as np
import pytest
from core_ray import CoreReplica
from ray import serve

MODELS = 6
TABLE_MIB = 96  # of a model; its process takes some 30 MiB more
BUDGET_MIB = 300  # of a replica: two models, not three

MODEL = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    \"\"\"Holds a table of {mib} MiB, and answers y = x + {number}.\"\"\"

    def initialize(self, args):
        self.table = np.full(({mib}, 2**20), 7, np.uint8)

    def execute(self, requests):
        answers = []
        for each in requests:
            x = pb_utils.get_input_tensor_by_name(each, "x").as_numpy()
            y = x + np.int32({number} + self.table[0, 0] - 7)
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", y)]))
        return answers
"""
CONFIG = """
backend: "python"
input [{{ name: "x" data_type: TYPE_INT32 dims: [1] }}]
output [{{ name: "y" data_type: TYPE_INT32 dims: [1] }}]
parameters {{ key: "memory.estimate" value {{ string_value: "{mib}M" }} }}
"""


@pytest.fixture(scope="module")
def handle(cluster, tmp_path_factory):
    """Two replicas with memory for two of six models each; `figures` returns what a replica has done."""
    folder = tmp_path_factory.mktemp("models")
    for number in range(MODELS):
        (folder / f"m{number}" / "1").mkdir(parents=True)
        code = MODEL.format(mib=TABLE_MIB, number=number)
        (folder / f"m{number}" / "1" / "model.py").write_text(code)
        config = CONFIG.format(mib=TABLE_MIB + 30)
        (folder / f"m{number}" / "config.pbtxt").write_text(config)

    class Replica(CoreReplica):
        async def figures(self):
            found = {
                family.name: sum(each.value for each in family.samples)
                for family in self._server.metrics()
                if family.name.startswith(("core_model_", "core_memory_"))
            }
            loaded = sorted(each["name"] for each in self._server.statistics())
            return os.getpid(), loaded, found

    deployment = serve.deployment(
        Replica, num_replicas=2, max_ongoing_requests=100, ray_actor_options={"num_cpus": 0.5}
    )
    options = {"load_on_request": True, "memory_budget": f"{BUDGET_MIB}M"}
    bound = deployment.bind(model_repository=str(folder), **options)
    yield serve.run(bound, name="more", route_prefix="/more")
    serve.delete("more")


def ask(handle, number):
    """Ask a model by its id; the answer must be that of this model."""
    named = handle.options(multiplexed_model_id=f"m{number}")
    call = named.infer.remote(f"m{number}", {"x": np.array([1000], np.int32)})
    assert call.result(timeout_s=180)["y"].tolist() == [1000 + number]


def replicas(handle):
    """Return process → (loaded models, figures) of both replicas."""
    found = {}
    while len(found) < 2:
        pid, loaded, figures = handle.figures.remote().result(timeout_s=120)
        found[pid] = loaded, figures
    return found


def loads(handle):
    return sum(each["core_model_loads_on_request"] for _, each in replicas(handle).values())


def test_all_models_answer_and_the_account_keeps_each_replica_within_its_budget(handle):
    for number in [*range(MODELS), *range(MODELS)]:
        ask(handle, number)
        for loaded, figures in replicas(handle).values():
            assert len(loaded) <= 2
            assert figures["core_memory_used_bytes"] <= BUDGET_MIB << 20

    found = replicas(handle).values()
    assert sum(figures["core_model_evictions"] for _, figures in found) >= MODELS - 4
    assert all(loaded for loaded, _ in found)  # both replicas hold models


def test_requests_by_id_go_to_the_replica_that_holds_the_model_also_after_another_had_to_go(handle):
    def settle(numbers, seconds=240):
        """Ask until each model is loaded somewhere and the routers know where."""
        end, before = time.monotonic() + seconds, -1
        while (now := loads(handle)) != before:
            assert time.monotonic() < end, replicas(handle)
            before = now
            for number in numbers:
                ask(handle, number)
                time.sleep(2)  # the replicas report once a second

    for held in ([0, 1, 2], [3, 4, 5]):
        settle(held)
        before = loads(handle)

        for _ in range(10):
            for number in held:
                ask(handle, number)

        assert loads(handle) == before
