"""The Dockerfile: its sources exist, the server runs without rights, and its steps are those of CI."""

import json
import re
import shlex
import stat
import subprocess
from pathlib import Path

import pytest

from core import plugins
from core.options import parse

ROOT = Path(__file__).parents[2]
FILE = ROOT / "deploy" / "docker" / "Dockerfile"
KSERVE = ROOT / "examples" / "kserve" / "Dockerfile"  # of a transformer and an explainer
DEFAULTS = {flag.name: flag.default for flag in plugins.flags().rows}
TRITONS = [  # of kserve-tritonserver, behind the name of the program
    *("--model-store=/mnt/models", "--grpc-port=9000", "--http-port=8080"),
    *("--allow-grpc=true", "--allow-http=true"),
]
COMPILERS = {"g++", "gcc", "build-essential", "cmake", "ninja-build", "libnghttp2-dev"}


def instructions(file=FILE):
    """(word, rest) of each instruction; lines that go on are joined."""
    lines = [line for line in file.read_text().splitlines() if not line.lstrip().startswith("#")]
    text = re.sub(r"\\\n", " ", "\n".join(lines))
    pairs = [line.partition(" ") for line in text.splitlines() if line]
    return [(word, rest.strip()) for word, _, rest in pairs]


def stages(file=FILE):
    """The instructions of each stage, its FROM first."""
    found = []
    for each in instructions(file):
        if each[0] == "FROM":
            found.append([])
        if found:
            found[-1].append(each)
    return found


def last(word, file=FILE):
    """Return the arguments of an instruction in the last stage, from its last line."""
    return [rest for each, rest in stages(file)[-1] if each == word][-1]


def test_every_instruction_is_known():
    known = {"ARG", "FROM", "RUN", "WORKDIR", "COPY", "LABEL", "ENV", "USER", "VOLUME", "EXPOSE"}
    known |= {"HEALTHCHECK", "STOPSIGNAL", "ENTRYPOINT", "CMD"}

    assert {word for word, _ in instructions()} <= known


def test_the_ignore_file_keeps_all_files_of_the_build():
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    kept = [line[1:] for line in ignored if line.startswith("!")]

    assert "*" in ignored
    assert [name for name in kept if not (ROOT / name).exists()] == []
    assert {"pyproject.toml", "CMakeLists.txt", "core", "frontends", "backends", "plugins"} <= set(
        kept
    )


def test_the_last_stage_has_no_compiler():
    installed = " ".join(rest for word, rest in stages()[-1] if word == "RUN").split()

    assert COMPILERS & set(installed) == set()
    assert COMPILERS & set(" ".join(rest for word, rest in stages()[0] if word == "RUN").split())


def test_it_runs_as_a_user_other_than_root():
    user, group = last("USER").split(":")

    assert int(user) > 0 and int(group) > 0


@pytest.mark.parametrize("file", [FILE, KSERVE], ids=["core", "kserve"])
def test_any_user_of_any_group_may_write_to_its_home(file, tmp_path):
    """The steps run here, with a useradd that makes the folder as the strictest one does."""
    home = dict(each.partition("=")[::2] for each in last("ENV", file).split())["HOME"]
    assert home == last("WORKDIR", file)
    (step,) = [rest for word, rest in stages(file)[-1] if word == "RUN" and "useradd" in rest]
    made = tmp_path / "home"
    commands = [each for each in step.replace(home, str(made)).split(" && ") if str(made) in each]
    useradd = tmp_path / "useradd"
    useradd.write_text(f"#!/bin/sh\nmkdir -m 700 {made}\n")
    useradd.chmod(0o755)

    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    subprocess.run(["sh", "-ec", "\n".join(commands)], env=environment, check=True)

    assert stat.S_IMODE(made.stat().st_mode) == 0o1777  # as that of /tmp


def test_its_ports_are_the_defaults_of_the_options():
    ports = {DEFAULTS[f"{name}-port"] for name in ("http", "grpc", "metrics")}

    assert set(map(int, last("EXPOSE").split())) == ports


def test_its_health_check_asks_for_liveness_with_python():
    command = last("HEALTHCHECK").partition(" CMD ")[2]
    python, flag, text = eval(command)

    assert (python, flag) == ("python", "-c")
    compile(text, "healthcheck", "exec")
    assert f"127.0.0.1:{DEFAULTS['http-port']}/v2/health/live" in text


@pytest.fixture
def started(tmp_path):
    """Start the image's program; its core-serve prints its process id and arguments, which are returned."""
    program = tmp_path / "core-serve"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$$" "$@"\n')
    program.chmod(0o755)

    def start(arguments):
        process = subprocess.Popen(
            [*json.loads(last("ENTRYPOINT")), *arguments],
            env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
            stdout=subprocess.PIPE,
            text=True,
        )
        own, *found = process.communicate(timeout=60)[0].splitlines()
        return process, int(own), found

    return start


def test_signals_reach_the_server(started):
    process, own, _ = started(json.loads(last("CMD")))

    assert own == process.pid  # no shell between them
    assert last("STOPSIGNAL") == "SIGTERM"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        json.loads(last("CMD")),
        ["--model-repository=/a folder with $PATH", "--load-model=*", ""],
        ["--model-repository=/models", "tritonserver"],
    ],
)
def test_the_server_gets_the_arguments_of_the_container(started, arguments):
    assert started(arguments)[2] == arguments


def test_the_server_starts_with_the_arguments_of_kserves_triton_runtime(started):
    found = started(["tritonserver", *TRITONS])[2]

    assert found == TRITONS
    options = parse(found, plugins.flags())
    assert options.model_repository == ["/mnt/models"]
    assert (options.value("http_port"), options.value("grpc_port")) == (8080, 9000)


@pytest.mark.parametrize("step", ["pip wheel", "--no-deps", "--find-links"])
def test_wheels_are_made_as_ci_makes_them(step):
    """.ci/run makes these wheels, installs them elsewhere and sends requests to their server."""
    build = " ".join(rest for word, rest in stages()[0] if word == "RUN")

    assert step in build
    assert step in (ROOT / ".ci" / "run").read_text()


def test_the_backends_and_plugins_of_the_default_exist():
    given = dict(shlex.split(rest)[0].split("=", 1) for word, rest in stages()[0] if word == "ARG")
    folders = [
        ROOT / group / name
        for group in ("backends", "plugins")
        for name in given.pop(group.upper()).split()
    ]

    assert given == {"PACKAGES": ""} and folders
    assert [each for each in folders if not (each / "pyproject.toml").exists()] == []


def test_the_requested_plugins_are_built_and_installed(tmp_path):
    """The steps run here, with a pip that records its arguments."""
    pip = tmp_path / "python"
    pip.write_text('#!/bin/sh\necho "$@"\n')
    pip.chmod(0o755)
    steps = [rest for word, rest in stages()[0] if word == "RUN" and "/wheels" in rest]
    script = " && ".join(steps).replace("/opt/core/bin/python", "python")

    def said(plugins, packages=""):
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "BACKENDS": "onnx"}
        environment |= {"PLUGINS": plugins, "PACKAGES": packages}
        done = subprocess.run(
            ["sh", "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.splitlines()

    with_plugins = "\n".join(said("redis cloud[s3]"))
    assert "./backends/onnx\n" in with_plugins and "./plugins/redis\n" in with_plugins
    assert "./plugins/cloud\n" in with_plugins
    # Plugins without extras are among the files.
    assert with_plugins.splitlines()[-3].endswith("/wheels/*.whl core-cloud[s3]")
    assert "plugins" not in "\n".join(said("")) and "core-" not in "\n".join(said(""))
    # Packages are installed together with the wheels, so that pip finds versions that fit both.
    with_packages = said("cloud[s3]", "scikit-learn>=1.9,<2 lightgbm")
    installed = "/wheels/*.whl core-cloud[s3] scikit-learn>=1.9,<2 lightgbm"
    assert with_packages[-3].endswith(installed)
