"""The program `core`: each command as a process of its own, and `core serve` with every kind of path."""

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from conformance.launcher import free_ports

from tests.becoming import INTERRUPTIBLE

CORE = Path(sys.executable).with_name("core")
EXAMPLES = Path(__file__).parents[2] / "examples" / "models"
CLASS = "class Model:\n    def predict(self, X):\n        return X * 2\n"
FUNCTION = "def double(x: float) -> float:\n    return x * {factor}\n"


def run(*arguments, cwd=None):
    return subprocess.run(
        [CORE, *map(str, arguments)], capture_output=True, text=True, check=False, cwd=cwd
    )


class Server:
    """A `core serve` that is ready; `end` returns its exit status and what it printed."""

    def __init__(self, folder, arguments):
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self.port, grpc, metrics = free_ports(3)
        flags = [f"--http-port={self.port}", "--http-address", "127.0.0.1"]
        flags += [f"--grpc-port={grpc}", f"--metrics-port={metrics}", "--grpc-address=127.0.0.1"]
        self.log = folder / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [CORE, "serve", *map(str, arguments), *flags],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "TMPDIR": str(self.temporary)},
            )

    def wait(self, what="/v2/health/ready"):
        for _ in range(600):
            try:
                return self.get(what)
            except OSError:
                assert self.process.poll() is None, self.log.read_text()
                with_patience()
        raise AssertionError(self.log.read_text())

    def get(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data)
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def ask(self, model, **inputs):
        return self.get(f"/v2/models/{model}/generate", inputs)

    def left(self):
        """Return the folders of core that are still there; frameworks leave caches of their own."""
        return [each for each in self.temporary.iterdir() if each.name.startswith("core-")]

    def end(self, number=signal.SIGINT):
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(60), self.log.read_text()


def with_patience():
    """Wait between two looks at a condition that has a bound."""
    import time

    time.sleep(0.1)


@pytest.fixture
def serve(tmp_path):
    started = []

    def start(*arguments, ready=True):
        server = Server(tmp_path, arguments)
        started.append(server)
        if ready:
            server.wait()
        return server

    yield start
    for server in started:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with a model of each kind, trained here, that doubles or classifies."""
    folder = tmp_path_factory.mktemp("files")
    code = """
import joblib, numpy as np, torch, xgboost
from sklearn.linear_model import LinearRegression
X = np.arange(8.0).reshape(4, 2)
y = X.sum(axis=1)
joblib.dump(LinearRegression().fit(X, y), "line.joblib")
xgboost.XGBRegressor(n_estimators=2).fit(X, y).save_model("trees.json")
model = torch.nn.Linear(2, 1)
rows = torch.export.Dim("rows", max=64)
program = torch.export.export(model, (torch.ones(2, 2),), dynamic_shapes=({0: rows},))
torch.export.save(program, "net.pt2")
"""
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
    shutil.copy(EXAMPLES / "breast_cancer" / "1" / "model.onnx", folder / "cancer.onnx")
    (folder / "app.py").write_text(CLASS)
    (folder / "double.py").write_text(FUNCTION.format(factor=2))
    return folder


def test_each_kind_of_file_is_served_under_its_name_and_nothing_stays_behind(serve, files):
    names = ["cancer.onnx", "line.joblib", "net.pt2", "trees.json", "app.py", "double.py"]
    server = serve(*(files / name for name in names), "--trust")

    assert server.ask("double", x=1.5)["y"] == 3
    assert server.ask("line", X=[1.0, 2.0])["predict"] == pytest.approx(3)
    assert len(server.ask("trees", X=[1.0, 2.0])) == 3
    assert server.get("/v2/models/app/infer", infer("X", "FP64", [[1.0, 2.0]]))["outputs"][0][
        "data"
    ] == [2, 4]
    for name in ("cancer", "net"):
        (tensor,) = server.get(f"/v2/models/{name}")["inputs"]
        size = tensor["shape"][-1]
        answer = server.get(
            f"/v2/models/{name}/infer", infer(tensor["name"], "FP32", [[0.0] * size])
        )
        assert answer["outputs"][0]["data"]
    status, _ = server.end()
    assert status == 0
    assert server.left() == []


def infer(name, datatype, rows):
    shape = list(np.shape(rows))
    return {"inputs": [{"name": name, "datatype": datatype, "shape": shape, "data": rows}]}


def test_a_repository_and_the_folder_of_a_model_are_served(serve, tmp_path):
    repository = tmp_path / "models"
    shutil.copytree(EXAMPLES / "iris", repository / "iris")
    server = serve(repository, EXAMPLES / "digits", "--strict-readiness", "true", "--log-info")

    assert server.get("/v2/models/iris/ready") is None
    assert server.get("/v2/models/digits/ready") is None
    assert server.end(signal.SIGTERM)[0] == 0
    assert server.left() == []


def test_for_development_a_changed_file_is_loaded_and_a_broken_one_ends_nothing(serve, tmp_path):
    app = tmp_path / "app.py"
    app.write_text("def double(x: int) -> int:\n    return x // 0\n")
    (tmp_path / "broken.py").write_text("1 / 0\n")
    server = serve(app, tmp_path / "broken.py", "--dev", "--strict-readiness=false")
    server.wait("/v2/models/app/ready")

    with pytest.raises(urllib.error.HTTPError) as error:
        server.ask("app", x=1)
    assert "model.py(2): double" in json.loads(error.value.read())["error"]
    app.write_text("def double(x: int) -> int:\n    return x * 3\n")
    for _ in range(300):
        try:
            answer = server.ask("app", x=2)["y"]
        except urllib.error.HTTPError:
            with_patience()
        else:
            break

    assert answer == 6
    assert server.end()[0] == 0


def test_a_model_that_fails_ends_the_server_and_says_where_to_add_what_is_missing(serve, tmp_path):
    (tmp_path / "app.py").write_text("def predict(x): ...\n")
    server = serve(tmp_path / "app.py", ready=False)

    status, log = server.process.wait(60), server.log.read_text()

    assert status == 1
    assert "has no type for parameter 'x'" in log
    assert f"core init models {tmp_path / 'app.py'}" in log
    assert server.left() == []


def test_a_pickle_is_not_read_without_trust(files):
    done = run("serve", files / "line.joblib")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"error: '{files}/line.joblib' can hold code, and to read it is to run that code with your rights; "
        "it was not read. If you trust everyone who could write the file, add --trust\n"
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--port=8000"], "unrecognized option '--port=8000'; did you mean '--http-port'?"),
        (["--htp-port=1"], "unrecognized option '--htp-port=1'; did you mean '--http-port'?"),
        (["--http-port=x"], 'Bad option: "--http-port". Invalid option value. Got x'),
        (
            ["--http-port=70000"],
            'Bad option: "--http-port". Invalid option value. Got 70000, the value must be from 0 to 65535',
        ),
        (["--http-port"], "option '--http-port' requires an argument"),
        (["--http=1"], "option '--http=1' is ambiguous; possibilities: '--http-address'"),
        (
            ["--allow-http=maybe"],
            'Bad option: "--allow-http". invalid value for bool option: maybe',
        ),
        (
            ["--model-control-mode=auto"],
            "invalid argument for --model-control-mode: 'auto' is none of none, poll, explicit",
        ),
        (
            ["--load-model=m"],
            "Error: Use of '--load-model' requires setting '--model-control-mode=explicit' as well.",
        ),
        ([], "no PATH: give a model repository, the folder of a model, or a file"),
        (["--hlep"], "unrecognized option '--hlep'; did you mean '--help'?"),
    ],
)
def test_a_wrong_command_line_is_one_line_with_status_2(arguments, text):
    done = run("serve", *arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {text}") or text in done.stderr
    assert done.stderr.endswith("; see `core serve --help`\n")
    assert done.stderr.count("\n") == 1


def test_help_is_short_and_complete_help_has_every_flag():
    short, same, everything = run("serve", "--help"), run("serve", "-h"), run("serve", "--help-all")

    assert [each.returncode for each in (short, same, everything)] == [0, 0, 0]
    assert [each.stderr for each in (short, same, everything)] == ["", "", ""]
    assert short.stdout == same.stdout
    assert short.stdout.count("\n") < 60
    for flag in ("--http-port", "--workers", "--dev", "--trust"):
        assert flag in short.stdout
        assert flag in everything.stdout
    assert "--grpc-keepalive-time" in everything.stdout


def test_the_program_of_triton_keeps_its_form():
    done = subprocess.run(
        [sys.executable, "-m", "core.serve", "--help"], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Usage: core-serve [options]")


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"]])
def test_the_program_lists_its_commands(arguments):
    done = run(*arguments)
    same = subprocess.run(
        [sys.executable, "-m", "core", *arguments], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == same.stdout
    for name in (
        "check",
        "config",
        "encrypt",
        "explain",
        "help",
        "init",
        "plugins",
        "serve",
        "test",
        "token",
        "version",
    ):
        assert f"\n  {name} " in done.stdout


def test_the_other_commands_run():
    assert run("version").stdout == run("--version").stdout
    assert run("plugins").returncode == 0
    assert 'backend: "onnxruntime"' in run("config", EXAMPLES / "digits").stdout
    assert "model 'digits' version 1" in run("explain", EXAMPLES / "digits").stdout
    assert "contract" in run("test", "--help").stdout
    assert run("token", "alice", "--role", "infer").returncode == 0
    assert run("encrypt").returncode == 2
    assert run("sevre").stderr.startswith("error: no command named 'sevre'; did you mean 'serve'?")


def test_a_repository_is_made_from_files_checked_and_served(serve, files, tmp_path):
    made = run("init", "models", files / "cancer.onnx", files / "double.py", cwd=tmp_path)

    assert (made.returncode, made.stderr.replace("autofilled", "")[:0]) == (0, "")
    assert made.stdout.splitlines()[1:] == [
        "models/double: backend python, x FP64[1] → y FP64[1]",
        "to serve: core serve models",
    ]
    assert 'name: "x"' in (tmp_path / "models" / "double" / "config.pbtxt").read_text()
    checked = run("check", "models", "--load", cwd=tmp_path)
    assert checked.returncode == 0
    assert checked.stdout.splitlines()[-1].startswith("2 models, 0 failed: 0 errors, 0 warnings")
    assert serve(tmp_path / "models").ask("double", x=2.0)["y"] == 4
    again = run("init", "models", files / "double.py", cwd=tmp_path)
    assert (again.returncode, again.stderr.split(":")[1]) == (1, " 'models/double' exists")
    linked = run("init", "models", files / "double.py", "--link", "--name", "twice", cwd=tmp_path)
    assert linked.returncode == 0
    assert (tmp_path / "models" / "twice" / "1" / "model.py").is_symlink()


def test_a_file_that_does_not_describe_itself_gets_a_configuration_to_edit(tmp_path):
    (tmp_path / "app.py").write_text("def predict(x):\n    return x\n")
    made = run("init", "models", "app.py", cwd=tmp_path)

    assert made.returncode == 1
    assert "models/app: made, but it does not load: " in made.stderr
    config = tmp_path / "models" / "app" / "config.pbtxt"
    text = config.read_text().replace("# input", "input").replace("# output", "output")
    config.write_text(text)
    checked = run("check", "models", "--load", cwd=tmp_path)
    assert checked.stdout.startswith("app  ok  python, version 1, ")


def test_a_check_says_what_a_load_would_refuse(tmp_path):
    models = tmp_path / "models"
    shutil.copytree(EXAMPLES / "digits", models / "digits")
    (models / "iris").mkdir()
    shutil.copy(EXAMPLES / "digits" / "1" / "model.onnx", models / "iris")
    (models / "later" / "2").mkdir(parents=True)
    (models / "later" / "2" / "model.py").write_text("def predict(x):\n    return x\n\n\n1 / 0\n")

    done = run("check", "models", "--load", cwd=tmp_path)

    assert done.returncode == 1
    lines = [line for line in done.stdout.splitlines() if ": note: " not in line]
    digits, iris, no_version, later, divided, count = lines
    assert digits.startswith("digits  ok  onnxruntime, version 1, ")
    assert (iris, later) == ("iris    failed", "later   failed")
    assert "'iris' has model.onnx but no version folder" in no_version
    assert "error: ZeroDivisionError: division by zero At: " in divided
    assert "models/later/2/model.py(5)" in divided
    assert count.startswith("3 models, 2 failed: 2 errors, 0 warnings")


def test_a_repository_without_models_fails_a_check(tmp_path):
    (tmp_path / "model.onnx").touch()

    done = run("check", tmp_path)

    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        f"{tmp_path}: error: {tmp_path}: it holds no folder of a model (found model.onnx); "
        f"try: core init {tmp_path} {tmp_path}/model.onnx [layout]",
        "0 models, 0 failed: 1 error, 0 warnings, 0 notes",
    ]


@pytest.mark.parametrize("arguments", [["plugins"], ["serve", "--help-all"]])
def test_a_reader_that_leaves_early_causes_no_traceback(arguments):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run(
            [CORE, *arguments], stdout=closed, stderr=subprocess.PIPE, text=True, check=False
        )

    assert (done.returncode, done.stderr) == (141, "")


def test_an_interrupted_command_prints_no_traceback(tmp_path):
    (tmp_path / "slow" / "1").mkdir(parents=True)
    ready = tmp_path / "ready"
    (tmp_path / "slow" / "1" / "model.py").write_text(
        f"import pathlib, time\npathlib.Path({str(ready)!r}).touch()\ntime.sleep(60)\n"
    )
    process = subprocess.Popen(
        [*INTERRUPTIBLE, CORE, "check", tmp_path, "--load"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in range(600):
        if ready.exists():
            break
        with_patience()
    process.send_signal(signal.SIGINT)

    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 130
