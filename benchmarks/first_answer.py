"""Seconds to a first answer, beside other servers: python -m benchmarks.first_answer [--wheels wheels]

Each run begins as in a new container: an empty home, no cache of pip, no variable but PATH. It installs a
server, starts it, and ends with the first right answer. All serve one random forest of scikit-learn: core as
model.onnx and as model.joblib, the others as model.joblib. `make serve` starts from a clone, the wheels come
from `make wheels`, everything else from the package index of pip.

Prints a table for docs/start/install.md: by server, the seconds of all runs and megabytes of the environment.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.servers.running import free_ports

ROOT = Path(__file__).parents[1]
FLOWER = [5.1, 3.5, 1.4, 0.2]  # the first of the data set: class 0
LIMIT_S = 1200.0
EXIT_S = 20.0
LITSERVE = """\
import joblib
import litserve


class Iris(litserve.LitAPI):
    def setup(self, device):
        self.model = joblib.load("model.joblib")

    def decode_request(self, request):
        return request["rows"]

    def predict(self, rows):
        return self.model.predict(rows)

    def encode_response(self, output):
        return {"classes": output.tolist()}


if __name__ == "__main__":
    litserve.LitServer(Iris()).run(port={port}, generate_client_file=False)
"""
BENTOML = """\
import bentoml
import joblib


@bentoml.service
class Iris:
    def __init__(self):
        self.model = joblib.load("model.joblib")

    @bentoml.api
    def predict(self, rows: list[list[float]]) -> list[int]:
        return self.model.predict(rows).tolist()
"""


@dataclass(frozen=True)
class Case:
    """One way to a first answer.

    install    what pip installs; with nothing, the command installs by itself, in .venv of its folder
    write      writes what the server needs into a folder: (folder, models, port)
    command    starts the server there; {bin} is the folder of the environment's programs
    request    path and body of the request
    classes    takes the predicted class from the answer
    """

    name: str
    install: Sequence[str]
    write: Callable[[Path, Path, int], None]
    command: Sequence[str]
    request: tuple[str, Mapping[str, Any]]
    classes: Callable[[Any], Any]


@dataclass(frozen=True)
class Turn:
    """One run: seconds to install, seconds from the start to the first answer, size of the environment."""

    install_s: float
    start_s: float
    megabytes: float


def make_models(folder: Path) -> str:
    """Write model.joblib and model.onnx of one forest; return the version of scikit-learn."""
    import joblib
    import sklearn
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType
    from sklearn import datasets
    from sklearn.ensemble import RandomForestClassifier

    data = datasets.load_iris()
    forest = RandomForestClassifier(100, random_state=0).fit(data.data, data.target)
    joblib.dump(forest, folder / "model.joblib")
    made = to_onnx(
        forest,
        initial_types=[("X", FloatTensorType([None, 4]))],
        options={id(forest): {"zipmap": False}},
        target_opset={"": 17, "ai.onnx.ml": 3},
    )
    (folder / "model.onnx").write_bytes(made.SerializeToString())
    version: str = sklearn.__version__
    return version


def write_clone(folder: Path, models: Path, port: int) -> None:
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)


def write_repository(file: str) -> Callable[[Path, Path, int], None]:
    def write(folder: Path, models: Path, port: int) -> None:
        version = folder / "models" / "iris" / "1"
        version.mkdir(parents=True)
        shutil.copy(models / file, version)
        if file.endswith(".joblib"):
            trust = 'parameters { key: "TRUSTED" value { string_value: "true" } }\n'
            (version.parent / "config.pbtxt").write_text(trust)

    return write


def write_program(name: str, text: str) -> Callable[[Path, Path, int], None]:
    def write(folder: Path, models: Path, port: int) -> None:
        shutil.copy(models / "model.joblib", folder)
        (folder / name).write_text(text.replace("{port}", str(port)))

    return write


def write_mlserver(folder: Path, models: Path, port: int) -> None:
    shutil.copy(models / "model.joblib", folder)
    free = free_ports()
    ports = {"http_port": port, "grpc_port": free.grpc, "metrics_port": free.metrics}
    settings = {"host": "127.0.0.1", "parallel_workers": 0, **ports}
    (folder / "settings.json").write_text(json.dumps(settings))
    model = {
        "name": "iris",
        "implementation": "mlserver_sklearn.SKLearnModel",
        "parameters": {"uri": "./model.joblib"},
    }
    (folder / "model-settings.json").write_text(json.dumps(model))


def _tensor(name: str, datatype: str, shape: Sequence[int], data: object) -> Mapping[str, Any]:
    return {"inputs": [{"name": name, "datatype": datatype, "shape": shape, "data": data}]}


def _output(answer: Any) -> Any:
    return answer["outputs"][0]["data"][0]


def cases(wheels: Path, learn: str) -> list[Case]:
    """Return all cases. `learn` is the requirement for scikit-learn, by which the models were made."""
    find = ["--find-links", str(wheels)]
    flags = [
        "--http-address=127.0.0.1",
        "--http-port={port}",
        "--allow-grpc=false",
        "--allow-metrics=false",
    ]
    serve = ["{bin}/core-serve", "--model-repository=models", *flags]
    iris = "/v2/models/iris/infer"
    digit = json.loads((ROOT / "examples" / "clients" / "digit.json").read_text())
    return [
        Case(
            "core, `make serve`",
            [],
            write_clone,
            ["make", "serve", f"ARGS={' '.join(flags)}"],
            ("/v2/models/digits/infer", digit),
            lambda answer: 0 if ":7:seven" in _output(answer) else None,
        ),
        Case(
            "core, ONNX",
            [*find, "core[onnx,python]"],
            write_repository("model.onnx"),
            serve,
            (iris, _tensor("X", "FP32", [1, 4], FLOWER)),
            _output,
        ),
        Case(
            "core, joblib",
            [*find, "core[python,adapters]", learn],
            write_repository("model.joblib"),
            serve,
            (iris, _tensor("X", "FP64", [1, 4], FLOWER)),
            _output,
        ),
        Case(
            "LitServe, joblib",
            ["litserve", learn],
            write_program("app.py", LITSERVE),
            ["{bin}/python", "app.py"],
            ("/predict", {"rows": [FLOWER]}),
            lambda answer: answer["classes"][0],
        ),
        Case(
            "BentoML, joblib",
            ["bentoml", learn],
            write_program("service.py", BENTOML),
            ["{bin}/bentoml", "serve", "service:Iris", "--host=127.0.0.1", "--port={port}"],
            ("/predict", {"rows": [FLOWER]}),
            lambda answer: answer[0],
        ),
        Case(
            "MLServer, joblib",
            ["mlserver", "mlserver-sklearn", learn],
            write_mlserver,
            ["{bin}/mlserver", "start", "."],
            (iris, _tensor("predict", "FP64", [1, 4], FLOWER)),
            _output,
        ),
    ]


def turn(case: Case, models: Path) -> Turn:
    """Install and start a server in an empty folder. Raises RuntimeError if it gives no right answer."""
    with tempfile.TemporaryDirectory(prefix="first-answer-") as name:
        home, folder = Path(name, "home"), Path(name, "work")
        home.mkdir()
        if case.write is not write_clone:
            folder.mkdir()
        port = free_ports().http
        case.write(folder, models, port)
        bare = {"PATH": _path(), "HOME": str(home)}
        environment = folder / ".venv"
        begin = time.monotonic()
        if case.install:
            pip = [f"{environment}/bin/python", "-m", "pip", "install", "--quiet", "--no-cache-dir"]
            for command in (
                [sys.executable, "-m", "venv", str(environment)],
                [*pip, *case.install],
            ):
                subprocess.run(command, env=bare, check=True, timeout=LIMIT_S)
        installed = time.monotonic()
        command = [word.format(bin=environment / "bin", port=port) for word in case.command]
        with open(folder / "server.log", "w+") as log:
            server = subprocess.Popen(
                command, cwd=folder, env=bare, stdout=log, stderr=log, start_new_session=True
            )
            try:
                while not answers(case, port):
                    if server.poll() is not None or time.monotonic() > begin + LIMIT_S:
                        log.seek(0)
                        raise RuntimeError(f"{case.name}: no answer\n{log.read()}")
                    time.sleep(0.05)
                end = time.monotonic()
            finally:
                end_server(server)
        return Turn(installed - begin, end - installed, size(environment) / 1e6)


def end_server(server: subprocess.Popen[bytes]) -> None:
    """End a server by SIGTERM, since some start processes outside their group; what is left by SIGKILL."""
    os.killpg(server.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        server.wait(EXIT_S)
    with suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
    server.wait()


def answers(case: Case, port: int) -> bool:
    """Return whether the server answers with the right class; False while it is not ready."""
    path, body = case.request
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return bool(case.classes(json.loads(answer.read())) == 0)
    except OSError:
        return False


def size(folder: Path) -> int:
    """Return the bytes of all files, each once."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def _path() -> str:
    python = Path(sys.base_prefix) / "bin"
    return f"{python}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def table(found: Mapping[str, Sequence[Turn]]) -> str:
    """Return the table of docs/start/install.md."""
    lines = ["| | install, s | start to first answer, s | MB |", "|---|---|---|---:|"]
    for name, turns in found.items():
        install = (
            ", ".join(f"{each.install_s:.0f}" for each in turns) if turns[0].install_s > 1 else ""
        )
        start = ", ".join(f"{each.start_s:.1f}" for each in turns)
        lines.append(f"| {name} | {install} | {start} | {turns[-1].megabytes:.0f} |")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_answer")
    parser.add_argument("--wheels", type=Path, default=ROOT / "wheels", help="of `make wheels`")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="cases whose name has this text")
    chosen = parser.parse_args(arguments)
    if not any(chosen.wheels.glob("core-*.whl")):
        parser.error(f"no wheel of core in '{chosen.wheels}'; run `make wheels`")
    with tempfile.TemporaryDirectory() as name:
        learn = f"scikit-learn=={make_models(Path(name))}"
        wanted = [
            each for each in cases(chosen.wheels.resolve(), learn) if chosen.only in each.name
        ]
        found: dict[str, list[Turn]] = {each.name: [] for each in wanted}
        for _ in range(chosen.runs):
            for case in wanted:
                found[case.name].append(turn(case, Path(name)))
                print(f"{case.name}: {found[case.name][-1]}", file=sys.stderr, flush=True)
    print(table(found))


if __name__ == "__main__":
    main(sys.argv[1:])
