"""The console of a server in a terminal: --terminal=auto."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from .console import ADDRESSES, Console

READY = r"ready: .*\n(?:  .*\n)*\n"


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def add(folder, name, kind="FP32", dims="2", rows=4):
    """Add a model that returns its input."""
    put(
        folder / "models" / name / "config.pbtxt",
        f'backend: "identity"\nmax_batch_size: {rows}\n'
        f'input [ {{ name: "INPUT0" data_type: TYPE_{kind} dims: [ {dims} ] }} ]\n'
        f'output [ {{ name: "OUTPUT0" data_type: TYPE_{kind} dims: [ {dims} ] }} ]\n',
    )
    (folder / "models" / name / "1").mkdir()


@pytest.fixture
def open_console(tmp_path):
    opened = []

    def start(*arguments, **more):
        opened.append(Console("--model-repository=models", *arguments, cwd=tmp_path, **more))
        return opened[-1]

    yield start
    for each in opened:
        each.kill()


def test_a_person_sees_models_addresses_and_the_end(open_console, tmp_path):
    add(tmp_path, "echo")
    add(tmp_path, "other")

    console = open_console("--terminal=auto")
    console.until(READY)
    console.press(b"\x03")

    assert console.end() == 0
    assert re.fullmatch(
        r"core \S+ loads models from models\n"
        r"  ✓ (echo|other) +\d+\.\d s\n"
        r"  ✓ (echo|other) +\d+\.\d s\n"
        r"\n"
        r"ready: 2 models, http://127\.0\.0\.1:\d+\n"
        r"  gRPC     127\.0\.0\.1:\d+\n"
        r"  metrics  http://127\.0\.0\.1:\d+/metrics\n"
        r"""  try      curl -s http://127\.0\.0\.1:\d+/v2/models/echo/generate -d '\{"INPUT0":\[0,0\]\}'\n"""
        r"\n"
        r"\^C\n"
        r"stopping: running requests are finished; Ctrl-C again ends at once\n"
        r"ended after \d+\.\d s\n",
        console.text,
    ), console.text
    assert "\x1b[1;32m" in console.raw


def test_no_color_has_no_colours(open_console, tmp_path):
    add(tmp_path, "echo")

    console = open_console("--terminal=auto", environment={"NO_COLOR": "1"})
    console.until(READY)

    assert "\x1b[3" not in console.raw
    assert ";3" not in console.raw


@pytest.mark.parametrize("columns", [80, 120])
def test_paragraphs_fit_the_terminal(open_console, tmp_path, columns):
    add(tmp_path, "echo")
    add(tmp_path, "broken")
    put(tmp_path / "models/broken/config.pbtxt", 'backend: "hugectr"\n')
    put(tmp_path / "models/iris/model.onnx", "")
    put(tmp_path / "models/missing/config.pbtxt", 'backend: "onnxruntime"\n')
    put(tmp_path / "models/missing/1/weights.bin", "")

    console = open_console("--terminal=auto", "--exit-on-error=false", columns=columns)
    console.until(READY)

    shown = [each for each in console.lines if not each.startswith(("    $ ", "  try "))]
    assert max(map(len, shown)) <= columns
    assert max(map(len, shown)) > columns - 15
    assert "  ✗ broken\n    no backend named 'hugectr' (installed: " in console.text
    assert (
        "  ✗ iris\n"
        "    'iris' has model.onnx but no version folder\n"
        "    $ mkdir models/iris/1 && mv models/iris/model.onnx models/iris/1/\n"
    ) in console.text
    found = " ".join(console.text.split())
    assert "✗ missing unable to find" in found
    assert "1 model, http://127.0.0.1" in found
    assert "3 failed: broken, iris, missing" in found
    assert found.count("unable to find") == 1
    assert "Traceback" not in found


def test_a_failed_start_ends_with_the_names_and_the_flag(open_console, tmp_path):
    add(tmp_path, "echo")
    put(tmp_path / "models/iris/model.onnx", "")

    console = open_console("--terminal=auto", columns=200)

    assert console.end() == 1
    assert console.lines[-1] == (
        "error: creating server: Internal - failed to load all models: 'iris' cannot be loaded; with "
        "--exit-on-error=false the server starts without them"
    )
    assert "ended after" not in console.text


def test_warnings_stay_and_steps_are_left_out(open_console, tmp_path):
    (tmp_path / "models").mkdir()

    console = open_console("--terminal=auto", "--http-thread-count=3", columns=200)
    console.until(READY)

    assert "warning: --http-thread-count has no effect: one event loop serves all connections" in (
        console.text
    )
    assert "warning: model repository 'models' holds no models; expected is" in console.text
    assert "ready: 0 models, http://" in console.text
    assert "Started" not in console.text
    assert "| Option" not in console.text


def test_verbose_messages_bring_the_tables(open_console, tmp_path):
    add(tmp_path, "echo")

    console = open_console("--terminal=auto", "--log-verbose=1", columns=100)
    console.until(READY)

    assert "| cache_enabled " in console.text
    assert max(len(each) for each in console.lines if each.startswith("|")) <= 100


def test_a_log_file_keeps_log_lines(open_console, tmp_path):
    add(tmp_path, "echo")

    console = open_console("--terminal=auto", "--log-file=server.log")
    console.until(READY)

    log = (tmp_path / "server.log").read_text()
    assert re.search(r'^I\d{4} .*\] "successfully loaded \'echo\'"$', log, re.MULTILINE)
    assert "✓" not in log
    assert "  ✓ echo" in console.text


def test_by_default_a_terminal_gets_log_lines(open_console, tmp_path):
    add(tmp_path, "echo")

    console = open_console()
    console.until("cache_enabled")

    assert "successfully loaded 'echo'" in console.text
    assert "ready:" not in console.text


def test_a_second_key_ends_the_server_at_once(open_console, tmp_path):
    put(
        tmp_path / "models/slow/config.pbtxt",
        'backend: "python"\ninput [ { name: "A" data_type: TYPE_FP32 dims: [ -1 ] } ]\n'
        'output [ { name: "B" data_type: TYPE_FP32 dims: [ -1 ] } ]\n',
    )
    put(
        tmp_path / "models/slow/1/model.py",
        "import time\n"
        "class TritonPythonModel:\n"
        "    def initialize(self, args):\n"
        '        print("begun", flush=True)\n'
        "        time.sleep(60)\n"
        "    def execute(self, requests):\n"
        "        return []\n",
    )
    console = open_console("--terminal=auto")
    console.until("begun")

    console.press(b"\x03")
    console.until("stopping: ")
    console.press(b"\x03")

    assert console.end() == 1
    assert "Exiting immediately." in console.text


def test_a_model_that_loads_long_is_named(open_console, tmp_path):
    put(
        tmp_path / "models/slow/config.pbtxt",
        'backend: "python"\ninput [ { name: "A" data_type: TYPE_FP32 dims: [ -1 ] } ]\n'
        'output [ { name: "B" data_type: TYPE_FP32 dims: [ -1 ] } ]\n',
    )
    put(
        tmp_path / "models/slow/1/model.py",
        "import time\n"
        "class TritonPythonModel:\n"
        "    def initialize(self, args):\n"
        "        time.sleep(11)\n"
        "    def execute(self, requests):\n"
        "        return []\n",
    )

    console = open_console("--terminal=auto")

    console.until("still loading 'slow', 10 s: it opens its instances\n")
    console.until(r"  ✓ slow +\d+\.\d s\n")


REQUESTS = {
    "numbers": ("FP32", "2", 4, "generate"),
    "one number": ("INT64", "1", 4, "generate"),
    "texts": ("STRING", "2", 4, "generate"),
    "a truth": ("BOOL", "1", 0, "generate"),
    "any number": ("UINT8", "-1, 3", 4, "generate"),
    "halves": ("FP16", "2", 4, "infer"),
    "an image": ("FP32", "3, 224, 224", 4, "infer"),
    "an image without a batch": ("UINT8", "3, 224, 224", 0, "infer"),
    "many texts": ("STRING", "300", 4, "infer"),
}


@pytest.mark.parametrize(("kind", "dims", "rows", "verb"), REQUESTS.values(), ids=REQUESTS)
def test_the_command_to_try_works(open_console, tmp_path, kind, dims, rows, verb):
    add(tmp_path, "my model", kind, dims, rows)
    console = open_console("--terminal=auto", columns=80)
    console.until(READY)
    command = console.until(r"  try      (.*)\n")[1]

    file = "" if " -o answer" in command else "-o answer"
    done = subprocess.run(
        ["sh", "-c", f"{command} {file} -w '%{{http_code}}'"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    answer = (tmp_path / "answer").read_bytes()
    assert done.stdout == "200", answer
    assert f"/{verb}" in command
    if verb == "generate":
        assert "OUTPUT0" in json.loads(answer)
    else:
        assert b'"OUTPUT0"' in answer


@pytest.mark.parametrize("task", ["generate", "embed", "rank"])
def test_the_command_to_try_works_for_an_engine(open_console, tmp_path, task):
    """All inputs of such a model are optional, but a request without any is refused."""
    pytest.importorskip("backend_testing.letters")
    settings = "".join(
        f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n'
        for name, value in {"task": task, "context": "64"}.items()
    )
    put(tmp_path / "models/m/config.pbtxt", f'backend: "letters"\n{settings}')
    (tmp_path / "models/m/1").mkdir()
    command = open_console("--terminal=auto", columns=80).until(r"  try      (.*)\n")[1]

    done = subprocess.run(
        ["sh", "-c", f"{command} -w '%{{http_code}}'"], capture_output=True, text=True, check=False
    )

    assert done.stdout.endswith("200"), done.stdout
    assert (done.stdout.count("data: ") > 10) == (task == "generate")


def test_a_pipe_gets_log_lines_without_the_options(tmp_path):
    add(tmp_path, "echo")
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "core.serve",
            *ADDRESSES,
            "--model-repository=models",
            "--terminal=auto",
        ],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("| echo"):
                process.send_signal(signal.SIGTERM)
        text = "".join(lines)

    assert process.returncode == 0
    assert re.search(r"^I\d{4} .*\] \"successfully loaded 'echo'\"$", text, re.MULTILINE)
    assert "| echo  | 1       | READY  |" in text
    assert "Signal (15) received." in text
    assert "cache_enabled" not in text
    assert "\x1b" not in text
