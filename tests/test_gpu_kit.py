"""`make gpu-kit` carries what tests and benchmarks of a GPU need, and its program runs without network."""

import re
import subprocess
import sys

import pytest
from gpu_kits import ROOT, contents, making, needs, wheel

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")


def project(folder):
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]


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
    elsewhere = ("tests/test_gpu_kit", *(f"{each}/" for each in contents.LEFT_OUT))
    assert {each for each in listed if not each.startswith(elsewhere)} <= found
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

    lines = making.report(tmp_path, {"wheels": 1 << 20, "needs": 3 << 20}, found)

    assert [" ".join(line.split()) for line in lines] == [
        "1.0 MiB wheels",
        "3.0 MiB needs",
        "3.0 MiB needs/big-1-py3-none-any.whl",
        "neither there nor carried: torch>=2.8, of backend-pytorch",
        f"4.0 MiB {tmp_path}",
    ]


def test_a_kit_above_the_limit_is_an_error_with_advice():
    sizes = {"wheels": 1 << 20, "needs": 60 << 20}

    assert making.too_large(sizes, 61) == ""
    assert making.too_large(sizes, 60.5) == (
        "the kit has 61.0 MiB, and --limit-mib is 60.5; the largest part is needs: "
        "--has FILE leaves out what is there, --limit-mib allows more"
    )
