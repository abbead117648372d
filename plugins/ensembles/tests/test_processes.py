"""A real server with the ensembles of examples/ensembles, as docs/serve/ensembles.md describes it."""

import json
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from conformance.launcher import Launcher

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "ensembles"
NUMBERS = {"number": ("FP64", [8.0, 27.0]), "guess": ("FP64", [1.0, 1.0])}


@pytest.fixture(scope="session")
def traces(tmp_path_factory):
    return tmp_path_factory.mktemp("traces") / "trace.json"


@pytest.fixture(scope="session")
def server(pytestconfig, traces):
    pytest.importorskip("backend_python")
    launcher = Launcher(pytestconfig)
    launcher.kind = "core"
    yield launcher.start(
        ["newton", "root", "quick", "thorough", "sentiment"],
        f"--trace-config=triton,file={traces}",
        "--trace-config=rate=1",
        "--trace-config=level=TIMESTAMPS",
        source=EXAMPLE / "models",
    )
    launcher.stop_all(wait=True)


def infer(server, model, inputs):
    """Return output → values; or the status and the text of the error."""
    body = {
        "inputs": [
            {"name": name, "datatype": datatype, "shape": [len(rows), 1], "data": rows}
            for name, (datatype, rows) in inputs.items()
        ]
    }
    url = f"http://{server.http_address}/v2/models/{model}/infer"
    try:
        with urllib.request.urlopen(url, json.dumps(body).encode()) as answer:
            return {each["name"]: each["data"] for each in json.load(answer)["outputs"]}
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())["error"]


def test_the_example_finds_roots_and_asks_the_slow_model_only_if_it_must(server):
    done = subprocess.run(
        [sys.executable, EXAMPLE / "ask.py", server.http_address],
        capture_output=True,
        text=True,
        check=True,
    )

    assert [" ".join(line.split()) for line in done.stdout.splitlines()] == [
        "the cube root of 8 is 2.000000000",
        "the cube root of 2 is 1.259921050",
        "the cube root of 1000 is 10.000000000",
        "A great film. praise 1.00 by the quick model",
        "Not bad. praise 0.95 by the thorough model",
        "Dull and awful. blame 1.00 by the quick model",
        "Lovely, but not good. blame 0.95 by the thorough model",
    ]


def spans(traces):
    """Return id → model and id → id of the parent, once each span in the file has ended."""
    end = time.monotonic() + 10
    while (text := traces.read_text()).count("REQUEST_END") < text.count("model_name") or not text:
        assert time.monotonic() < end
        time.sleep(0.05)
    entries = [each for each in json.loads(f"{text.removesuffix(']')}]") if "model_name" in each]
    models = {each["id"]: each["model_name"] for each in entries}
    return models, {each["id"]: each.get("parent_id") for each in entries}


def test_each_turn_is_a_span_with_its_steps_below_it(server, traces):
    assert infer(server, "root", NUMBERS) == {"root": [2, 3]}

    models, parents = spans(traces)
    turns = {each: name for each, name in models.items() if name.startswith("loop[0] turn ")}
    steps = [each for each, name in models.items() if name == "newton"]
    assert {models[parents[each]] for each in turns} == {"root"}
    assert steps and all(parents[each] in turns for each in steps)
    assert "loop[0] turn 1" in turns.values()


def test_metrics_count_decisions_and_turns(server):
    infer(server, "root", NUMBERS)
    infer(server, "sentiment", {"text": ("BYTES", ["good"])})
    text = server.get("/metrics", port=server.metrics_port).body.decode()

    def value(name, **labels):
        for line in text.splitlines():
            found = dict(re.findall(r'(\w+)="(.*?)"', line))
            if line.startswith(f"{name}{{") and found.items() >= labels.items():
                return float(line.rpartition(" ")[2])
        return 0

    assert value("core_ensemble_step_decisions", model="sentiment", step="step[1]", result="skip")
    turns = value("core_ensemble_loop_turns_sum", model="root", loop="loop[0]")
    assert turns > 3 * value("core_ensemble_loop_turns_count", model="root", loop="loop[0]") > 0
    assert value("core_ensemble_loops_at_max_turns", model="root", loop="loop[0]") == 0


def test_a_loop_that_does_not_end_answers_with_an_error(server):
    far = {"number": ("FP64", [1.0]), "guess": ("FP64", [1e100])}  # each turn takes a third away

    assert infer(server, "root", far) == (
        500,
        "in ensemble 'root', loop[0]: its condition still holds after 50 turns, the most that "
        "loop[0].max_turns allows: any(abs(root - guess) > 1e-9)",
    )


def test_the_check_names_the_parameter_and_the_position(tmp_path):
    models = tmp_path / "models"
    shutil.copytree(EXAMPLE / "models", models)
    file = models / "root" / "config.pbtxt"
    file.write_text(file.read_text().replace("root - guess", "rot - guess"))

    done = subprocess.run(
        [Path(sys.executable).with_name("core"), "check", models], capture_output=True, text=True
    )

    assert done.returncode == 1
    lines = file.read_text().splitlines()
    number = 1 + next(i for i in range(len(lines)) if "loop[0].while" in lines[i])
    where = f"{file}:{number}:1: error: in ensemble 'root', parameter 'loop[0].while'"
    assert f"{where}: no input and no step makes 'rot'" in done.stdout
    assert "at character 9 of: any(abs(rot - guess) > 1e-9)" in done.stdout
