"""What runs for each distribution of this repository finds all of them."""

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

ROOT = Path(__file__).parents[1]
GROUPS = {"backends", "plugins", "clients"}


def printed(*command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


FOLDERS = printed(".ci/distributions").split()


def test_every_folder_with_a_project_is_a_distribution_but_for_templates():
    projects = {str(path.parent.relative_to(ROOT)) for path in ROOT.glob("*/*/pyproject.toml")}

    found = {each for each in projects if each.split("/")[0] in GROUPS}
    assert found - set(FOLDERS) == {"backends/_template", "plugins/_template"}
    assert set(FOLDERS) <= found


@pytest.mark.parametrize("verb", ["lint", "test"])
def test_a_verb_is_run_for_every_distribution(verb):
    plan = printed("make", "--dry-run", "--always-make", verb)

    assert [folder for folder in FOLDERS if folder not in plan] == []
    assert "_template" not in plan


def test_pytest_knows_every_group():
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]

    assert set(tool["pytest"]["ini_options"]["testpaths"]) >= GROUPS


def test_the_source_distribution_has_all_files_of_core_and_frontends_and_no_group(tmp_path):
    # The same patterns leave files out of wheels.
    build = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
    printed(sys.executable, "-c", build, tmp_path)

    with tarfile.open(next(tmp_path.glob("core-*.tar.gz"))) as archive:
        found = {name.partition("/")[2] for name in archive.getnames()}
    tracked = set(printed("git", "ls-files", "core", "frontends", "cmake").splitlines())
    assert {name for name in tracked - found if (ROOT / name).exists()} == set()
    assert {name.split("/")[0] for name in found} & {*GROUPS, "tests", "docs"} == set()


@pytest.mark.parametrize("script", ["run", "wheels"])  # .ci/groups.py: tests/test_groups.py
def test_a_script_reads_the_list(script):
    text = (ROOT / ".ci" / script).read_text()

    assert "$(.ci/distributions" in text
    assert "/*/" not in text


def test_a_file_name_is_the_format_of_one_distribution():
    found = {}
    for path in sorted(ROOT.glob("[bp]*/[!_]*/pyproject.toml")):
        points = tomllib.loads(path.read_text())["project"].get("entry-points", {})
        for name in points.get("core.formats", {}):
            assert name not in found, f"{path.parent} and {found[name]}: {name}"
            found[name] = path.parent
    assert "model.onnx" in found
