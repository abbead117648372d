"""Models that load and unload others, and that are loaded and unloaded while others call them."""

import asyncio
import os
import signal
import textwrap

import pytest

MODES = ["process", "shared", "thread"]
DOUBLE = """
def execute(self, requests):
    return [respond(x_of(request) * 2) for request in requests]
"""
LOADS = """
def work(self):
    source = open(__file__).read().split("class TritonPythonModel")[0]
    source += "class TritonPythonModel:\\n    def execute(self, requests):\\n"
    source += "        return [respond(x_of(r) + 7) for r in requests]\\n"
    config = {"backend": "python", "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [-1]}],
              "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [-1]}]}
    before = pb_utils.is_model_ready("made")
    pb_utils.load_model("made", config=json.dumps(config),
                        files={"file:1/model.py": source.encode()})
    return [before, pb_utils.is_model_ready("made", "1"), pb_utils.is_model_ready("made", "2")]
"""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("where", ["initialize", "execute"])
async def test_a_model_loads_and_unloads_another(serve, mode, where):
    body = {
        "initialize": """
def initialize(self, args):
    self.found = self.work()
""",
        "execute": "",
    }[where]
    body += """
def execute(self, requests):
    found = self.found if hasattr(self, "found") else self.work()
    y = y_of(call("made", x_of(requests[0])).exec())
    pb_utils.unload_model("made")
    found = [*found, pb_utils.is_model_ready("made"), y[0]]
    try:
        pb_utils.load_model("nowhere")
    except pb_utils.TritonModelException as error:
        found.append("nowhere" in str(error))
    return [respond(np.array(found, np.float32))]
"""
    models = await serve(caller=(LOADS + body, {"mode": mode}))

    assert await models.ask("caller", 1) == [0, 1, 0, 0, 8, 1]


@pytest.mark.parametrize("mode", MODES)
async def test_loads_that_wait_for_loads_do_not_fill_the_places(serve, mode):
    chain = """
def initialize(self, args):
    name, number = args["model_name"].split("_")
    pb_utils.load_model("last" if number == "1" else f"{name}_{int(number) - 1}")

def execute(self, requests):
    return [respond(x_of(r)) for r in requests]
"""
    names = [f"{name}_{number}" for name in "abcd" for number in (1, 2, 3)]
    options = {"mode": mode, "count": 2}
    models = await serve(
        load_threads=1, beside={"last": DOUBLE, **{name: (chain, options) for name in names}}
    )

    await asyncio.gather(*[models.server.models.load(f"{name}_3") for name in "abcd"])

    assert all(models.server.models.is_ready(name) for name in (*names, "last"))


@pytest.mark.parametrize("mode", MODES)
async def test_an_unloading_model_answers_the_running_call_and_no_more(serve, mode):
    body = """
    def execute(self, requests):
        first = y_of(call("slow", x_of(requests[0])).exec())
        second = call("slow", x_of(requests[0])).exec()
        return [respond(np.array([first[0], second.has_error()], np.float32))]
    """
    slow = """
    def execute(self, requests):
        time.sleep(0.2)
        return [respond(x_of(request)) for request in requests]
    """
    models = await serve(slow=slow, caller=(body, {"mode": mode}))
    asked = asyncio.ensure_future(models.ask("caller", 4))
    await models.until(lambda: models.version("slow").chain.in_flight)

    await models.server.models.unload("slow")

    assert await asked == [4, 1]


async def test_a_call_waits_for_a_model_whose_child_restarts(serve, tmp_path):
    body = """
    def initialize(self, args):
        while os.path.exists(os.path.join(pb_utils.get_model_dir(), "wait")):
            time.sleep(0.01)
    """ + textwrap.indent(DOUBLE, "    ")
    caller = """
    def execute(self, requests):
        return [respond(y_of(call("slow", x_of(r)).exec())) for r in requests]
    """
    models = await serve(slow=body, caller=caller)
    wait = tmp_path / "slow" / "1" / "wait"
    wait.touch()
    os.kill(models.child("slow").pid, signal.SIGKILL)
    await models.until(lambda: not models.server.models.is_ready("slow"))

    asked = asyncio.ensure_future(models.ask("caller", 4))
    await models.until(lambda: models.version("slow").chain.in_flight)
    wait.unlink()

    assert await asked == [8]
