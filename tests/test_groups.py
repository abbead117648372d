"""`.ci/groups.py` runs each test file in one group, and tests that fail once more."""

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


PASSES = "def test_it():\n    pass\n"
FAILS = "def test_it():\n    assert 0\n"
FAILS_ONCE = """
from pathlib import Path

def test_it():
    ran = Path(__file__).with_suffix(".ran")
    if not ran.exists():
        ran.touch()
        assert 0

def test_another():
    pass
"""
DIES_ONCE = FAILS_ONCE.replace("assert 0", "__import__('os')._exit(1)")
MANY = "import pytest\n\n@pytest.mark.parametrize('i', range(6))\ndef test_it(i):\n    assert 0\n"


@pytest.fixture
def run(groups, tmp_path, monkeypatch):
    """Return a function that runs a group for each text of a test file, and returns the status."""

    def run(**texts):
        for name, text in texts.items():
            (tmp_path / name).mkdir()
            (tmp_path / name / f"test_{name}.py").write_text(text)
        options = "[pytest]\naddopts = --continue-on-collection-errors\n"
        (tmp_path / "pytest.ini").write_text(options)
        (tmp_path / "reports").mkdir()
        monkeypatch.setattr(groups, "ROOT", tmp_path)
        monkeypatch.setattr(groups, "commands", lambda part: [[name] for name in texts])
        return groups.main(tmp_path / "reports")

    return run


def test_a_test_that_fails_once_is_named_and_does_not_fail_the_run(run, capsys, tmp_path):
    assert run(good=PASSES, once=FAILS_ONCE) == 0

    last = capsys.readouterr().out.split("failed at first")[1]
    assert "once/test_once.py::test_it" in last
    assert "test_another" not in last
    assert (tmp_path / "reports" / "group-2-again.xml").exists()


@pytest.mark.parametrize(
    "texts",
    [
        {"bad": FAILS},
        {"once": FAILS_ONCE, "bad": FAILS},
        {"once": FAILS_ONCE, "bad": "import not_there\n"},
        {"once": FAILS_ONCE, "empty": ""},
        {"dies": DIES_ONCE},
        {"many": MANY},
    ],
    ids=["twice", "one of two twice", "cannot be imported", "without a test", "dies", "too many"],
)
def test_what_fails_otherwise_fails_the_run(run, texts):
    assert run(**texts) == 1


def test_more_than_a_few_failures_are_not_tried_again(run, tmp_path):
    run(many=MANY)

    assert not list((tmp_path / "reports").glob("*again*"))
