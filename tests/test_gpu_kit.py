"""`make gpu-kit` carries what tests and benchmarks of a GPU need, and its program runs without network."""

import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import textwrap
import zipfile
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")
pytest.importorskip("packaging")

ROOT = Path(__file__).parents[1]
KIT = ROOT / ".ci" / "gpu_kit"


def module(file):
    """Return a module of the kit's folder, which is no package."""
    spec = importlib.util.spec_from_file_location(f"gpu_kit_{file.stem}", file)
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found  # where dataclasses look
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(file.parent))
        spec.loader.exec_module(found)
    return found


contents, needs, program = (
    module(KIT / f"{name}.py") for name in ("contents", "needs", "__main__")
)
results = module(KIT / "carried" / "gpu_kit_results.py")
run = module(KIT / "carried" / "run.py")


def wheel(folder, name, version="1.0", requires=(), files=()):
    """Write a wheel; return its path."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    written = {
        f"{name}-{version}.dist-info/METADATA": head
        + "".join(f"Requires-Dist: {each}\n" for each in requires),
        f"{name}-{version}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\n"
        "Root-Is-Purelib: true\nTag: py3-none-any\n",
        **dict(files),
    }
    record = f"{name}-{version}.dist-info/RECORD"
    written[record] = "".join(f"{each},,\n" for each in [*written, record])
    with zipfile.ZipFile(path, "w") as archive:
        for each, text in written.items():
            archive.writestr(each, text)
    return path


def project(folder):
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]


# What is carried


FOLDERS = subprocess.check_output([".ci/distributions"], cwd=ROOT, text=True).split()


def test_every_distribution_with_tests_on_a_gpu_is_in_the_kit_or_left_out_by_name():
    marked = {
        "/".join(name.split("/")[:2])
        for name in contents.tracked("*/test_*.py")
        if contents.MARK.search((ROOT / name).read_text()) and not name.startswith("tests/")
    }
    contract = {each for each in FOLDERS if contents.on_gpus(each)}

    assert marked | contract == {*contents.TESTED, *contents.LEFT_OUT}


def test_what_a_distribution_of_the_kit_requires_of_this_project_is_in_the_kit():
    own = {project(each)["name"]: each for each in FOLDERS}
    found = {
        own[name]
        for folder in contents.distributions()
        for each in project(folder)["dependencies"]
        if (name := re.split(r"[ \[<>=~;]", each)[0]) in own
    }

    assert found <= set(contents.distributions())


def test_every_file_with_the_mark_is_in_a_group():
    command = ["git", "grep", "-l", "pytest.mark.gpu", "--", "*/test_*.py"]
    listed = set(subprocess.check_output(command, cwd=ROOT, text=True).split())

    found = {each for files in contents.test_files().values() for each in files}
    assert listed - {"tests/test_gpu_kit.py"} <= found
    assert all((ROOT / each).exists() and contents.travels(each) for each in found)


@pytest.mark.parametrize(
    ("name", "travels"),
    [
        ("conftest.py", True),
        ("tests/flow/conftest.py", True),
        ("backends/python/tests/conftest.py", True),
        ("benchmarks/gpu/models.py", True),
        ("core/tensor.py", False),
        ("frontends/http/frontend.py", False),
        ("backends/python/backend_python/__init__.py", False),
        ("backends/video/tests/test_conformance.py", False),
        ("docs/pictures/flow.svg", False),
        ("tests/pages/page.png", False),
        (".ci/run", False),
    ],
)
def test_tests_and_benchmarks_travel_and_code_does_not(name, travels):
    assert contents.travels(name) is travels


# What a machine lacks


def test_lists_of_pip_are_read():
    text = "Package Version\n------- -------\nNumPy   2.1.0\n# more\nnvidia_ml_py==13.0\ncupy-cuda13x\n"

    assert needs.installed(text) == {"numpy": "2.1.0", "nvidia-ml-py": "13.0", "cupy-cuda13x": ""}


def walked(tmp_path, wanted, has, made):
    """Return the names of the wheels that have to be carried, and what is absent."""
    asked = []

    def download(requirement):
        asked.append(requirement)
        name = re.split(r"[<>=!~]", requirement)[0]
        return wheel(tmp_path, name, requires=made[name])

    found = needs.walk([(each, "tests") for each in wanted], has, ["core"], download)
    return asked, found.absent


def test_a_library_is_carried_with_what_it_requires_itself(tmp_path):
    made = {"client": ["rapid>=1; extra == 'http'", "orc; extra == 'grpc'", "core"], "rapid": []}

    asked, absent = walked(tmp_path, ["client[http]>=2"], {}, made)

    assert asked == ["client>=2", "rapid>=1"] and absent == {}


def test_what_is_there_is_not_carried_unless_it_is_too_old(tmp_path):
    has = {"new": "2.0", "old": "1.0", "some": ""}

    asked, _ = walked(tmp_path, ["new>=1", "old>=1.5", "some>=9"], has, {"old": ["new"]})

    assert asked == ["old>=1.5"]


def test_a_requirement_of_another_system_is_not_carried(tmp_path):
    assert walked(tmp_path, ["wine; sys_platform == 'win32'"], {}, {}) == ([], {})


@pytest.mark.parametrize(
    "name", ["torch", "cupy-cuda13x", "nvidia-cublas", "jaxlib", "cuda-bindings"]
)
def test_a_framework_is_never_carried_and_named(tmp_path, name):
    assert walked(tmp_path, [f"{name}>=2"], {}, {}) == ([], {f"{name}>=2": "tests"})


def test_the_python_interface_of_nvml_is_carried(tmp_path):
    made = {"nvidia-ml-py": []}

    assert walked(tmp_path, ["nvidia-ml-py>=12"], {}, made) == (["nvidia-ml-py>=12"], {})


def test_the_report_has_each_part_the_largest_wheels_and_what_is_absent(tmp_path):
    (tmp_path / "needs").mkdir()
    (tmp_path / "needs" / "big-1-py3-none-any.whl").write_bytes(bytes(3 << 20))
    found = needs.Needs(absent={"torch>=2.8": "backend-pytorch"})

    lines = program.report(tmp_path, {"wheels": 1 << 20, "needs": 3 << 20}, found)

    assert [" ".join(line.split()) for line in lines] == [
        "1.0 MiB wheels",
        "3.0 MiB needs",
        "3.0 MiB needs/big-1-py3-none-any.whl",
        "neither there nor carried: torch>=2.8, of backend-pytorch",
        f"4.0 MiB {tmp_path}",
    ]


def test_a_kit_above_the_limit_is_an_error_with_advice():
    sizes = {"wheels": 1 << 20, "needs": 60 << 20}

    assert program.too_large(sizes, 61) == ""
    assert program.too_large(sizes, 60.5) == (
        "the kit has 61.0 MiB, and --limit-mib is 60.5; the largest part is needs: "
        "--has FILE leaves out what is there, --limit-mib allows more"
    )


# The results of tests


def row(test, outcome, reason="", group="g"):
    return {"group": group, "test": test, "outcome": outcome, "seconds": 0.1, "reason": reason}


def read(tmp_path, *rows):
    file = tmp_path / "tests.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in rows) + '{"group": "g", "te')
    return results.read(file)


def test_a_test_that_began_and_has_no_result_was_stopped(tmp_path):
    found = read(tmp_path, row("a", "running"), row("a", "passed"), row("b", "running"))

    assert [(each["test"], each["outcome"]) for each in found] == [
        ("a", "passed"),
        ("b", "stopped"),
    ]


def test_a_failure_counts_whatever_follows_it(tmp_path):
    (found,) = read(tmp_path, row("a", "failed", "E   why"), row("a", "passed"))

    assert found["outcome"] == "failed"


@pytest.mark.parametrize(
    ("name", "outcome"), [("torch", "skipped"), ("torch.nn", "skipped"), ("rapidjson", "error")]
)
def test_a_file_is_skipped_without_a_framework_and_fails_without_what_a_kit_has(name, outcome):
    found = results.judged(row("a", "error", f"E  ModuleNotFoundError: No module named '{name}'"))

    assert found["outcome"] == outcome


def test_the_summary_has_failures_then_skips_by_reason(tmp_path):
    rows = [row("a", "passed"), row("b", "failed", "x = 1\nE   assert 0\nE   more")]
    rows += [row(each, "skipped", "no GPU") for each in "cd"]

    assert results.summary(rows) == [
        "failed: b: assert 0",
        "    2 skipped: no GPU",
        "1 passed, 1 failed, 2 skipped",
    ]


def test_the_page_shows_the_reason_of_a_failure():
    text = results.page([row("a<b>", "failed", "E   1 < 2")], {"GPUs": 1})

    assert "a&lt;b&gt;" in text and "1 &lt; 2" in text and "GPUs 1" in text and "1 failed" in text


# The program of a kit


TESTS = textwrap.dedent("""
    import pytest
    pytestmark = pytest.mark.gpu

    def test_right():
        pass

    def test_wrong():
        assert 1 == 2

    @pytest.mark.skip(reason="no GPU")
    def test_none():
        pass
""")
CONFTEST = "import torch_that_is_missing\n"
BENCHMARK = "import sys\nprint(sys.argv[1:])\nsys.exit(3)\n"


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    """A kit with a wheel of one module and three groups of tests; returns a function that runs it."""
    folder = tmp_path_factory.mktemp("kit")
    (folder / "wheels").mkdir()
    wheel(folder / "wheels", "carried_module", files={"carried_module.py": "there = True\n"})
    for name, file in program.CARRIED.items():
        (folder / name).write_bytes((KIT / "carried" / file).read_bytes())
    (folder / "kit.json").write_text(
        json.dumps(
            {
                "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
                "commit": "abc",
                "groups": {
                    "some": ["some/test_some.py"],
                    "broken": ["broken/test_broken.py"],
                    "crash": ["crash/test_crash.py"],
                },
                "frameworks": ["numpy", "no_framework"],
                "imports": ["carried_module", "no_such_module"],
                "sanitized": ["some/test_some.py"],
            }
        )
    )
    files = {
        "pyproject.toml": '[tool.pytest.ini_options]\nmarkers = ["gpu: x"]\n',
        "some/test_some.py": TESTS,
        "broken/conftest.py": CONFTEST,
        "broken/test_broken.py": TESTS,
        "crash/test_crash.py": TESTS.replace("pass", "import os; os._exit(7)", 1),
        "benchmarks/__init__.py": "",
        "benchmarks/gpu/__init__.py": "",
        "benchmarks/gpu/__main__.py": BENCHMARK,
    }
    with tarfile.open(folder / "checkout.tar.gz", "w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))

    def ask(*arguments, **variables):
        command = [sys.executable, folder / "run", "--work", folder / "work", *arguments]
        environment = {**os.environ, **variables}
        return subprocess.run(
            [*map(str, command)], env=environment, capture_output=True, text=True, timeout=120
        )

    return ask


def test_groups_of_tests_run_one_by_one_and_leave_lines_and_a_page(kit, tmp_path):
    done = kit("tests", "--out", str(tmp_path))

    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert "no_framework none" in done.stdout and "numpy none" not in done.stdout
    assert "this kit lacks something: no_such_module" in done.stdout
    assert "this kit lacks something: carried_module" not in done.stdout
    assert any(re.match(r"some +1 passed, 1 failed, 1 skipped, ", line) for line in lines)
    assert "failed: some/test_some.py::test_wrong: assert 1 == 2" in lines
    assert "No module named 'torch_that_is_missing'" in done.stdout
    assert any(line.startswith("stopped: crash/test_crash.py::test_right") for line in lines)
    assert "error: crash: pytest ended with 7: see tests.log" in lines
    assert lines[-1] == "1 passed, 1 failed, 2 error, 1 stopped, 1 skipped"
    assert {each.name for each in tmp_path.iterdir()} == {"tests.jsonl", "tests.log", "tests.html"}


def test_the_benchmark_gets_its_options_and_its_time(kit, tmp_path):
    done = kit("benchmarks", "--out", str(tmp_path), "--seconds", "100", "--", "models")

    assert done.returncode == 1
    assert re.search(rf"\['--out', '{tmp_path}', '--limit', '\d\d', 'models'", done.stdout), (
        done.stdout
    )


def test_without_the_sanitizer_it_says_so(kit, tmp_path):
    done = kit("sanitizer", "--out", str(tmp_path), PATH=str(tmp_path))

    assert done.returncode == 1
    assert "compute-sanitizer is not installed" in done.stdout or "sees no GPU" in done.stdout


def test_a_kit_for_another_python_is_refused():
    with pytest.raises(
        run.Unfit, match=r"for Python 3\.12, and this is 3\.13: make gpu-kit PYTHON"
    ):
        run.check_python("3.12", (3, 13, 0))


def test_a_group_for_which_no_time_was_left_is_named():
    found = run.stopped("g", None, "")

    assert (found["outcome"], found["reason"]) == ("stopped", "no time was left")
