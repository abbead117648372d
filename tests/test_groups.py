"""`.ci/groups.py` runs each test file in one group, and what it leaves out on a bare machine elsewhere."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOPS = ("tests", "backends", "plugins", "clients", "examples")


@pytest.fixture(scope="module")
def groups():
    spec = importlib.util.spec_from_file_location("groups", ROOT / ".ci" / "groups.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def files():
    """Every test file; a folder that begins with _ is a template."""
    found = (each.relative_to(ROOT) for top in TOPS for each in (ROOT / top).rglob("test_*.py"))
    return {
        each for each in found if not any(part.startswith((".", "_")) for part in each.parts[:-1])
    }


def taken(files, arguments):
    """Return the files that pytest takes with these arguments."""
    ignored = {
        Path(each.removeprefix("--ignore=")) for each in arguments if each.startswith("--ignore=")
    }
    named = {Path(each.partition("::")[0]) for each in arguments if not each.startswith("--")}

    def below(file, paths):
        return file in paths or any(parent in paths for parent in file.parents)

    return {file for file in files if below(file, named) and not below(file, ignored)}


@pytest.mark.parametrize("part", ["everything", "bare", "installed"])
def test_each_path_exists_and_no_file_is_in_two_groups(groups, files, part):
    found = [file for group in groups.commands(part) for file in taken(files, group)]

    assert len(found) == len(set(found))
    for group in groups.commands(part):
        for each in group:
            assert (ROOT / each.removeprefix("--ignore=").partition("::")[0]).exists(), each


def test_every_file_is_in_a_group(groups, files):
    assert set().union(*(taken(files, each) for each in groups.commands("everything"))) == files


def test_what_a_bare_machine_leaves_out_runs_where_libraries_are_installed(groups, files):
    bare = set().union(*(taken(files, each) for each in groups.commands("bare")))
    installed = {
        file
        for group in groups.commands("installed")
        for file in taken(files, [each for each in group if "::" not in each])
    }

    assert files - bare <= installed
