"""`cmake/transpile.py` generates what has changed, and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("Cython.Build.SharedModule")

TRANSPILE = Path(__file__).parents[1] / "cmake" / "transpile.py"


@pytest.fixture
def sources(tmp_path):
    """Write a package; return a function that transpiles it and names the files that it generated."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "one.pyx").write_text(
        "from package.two cimport Two\ndef ask(Two two): return two.x\n"
    )
    (package / "two.py").write_text("class Two:\n    pass\n")
    (package / "two.pxd").write_text("cdef class Two:\n    cdef int x\n")
    made = {"package/one.pyx": "one.cxx", "package/two.py": "two.c", "package.shared": "shared.c"}
    lines = [
        f"{source}\t{tmp_path / name}\t{'CXX' if name.endswith('xx') else 'C'}\n"
        for source, name in made.items()
    ]
    (tmp_path / "jobs.tsv").write_text("".join(lines))

    def run(*directives, status=0):
        before = {name: stamp(tmp_path / name) for name in made.values()}
        command = [sys.executable, TRANSPILE, "jobs.tsv", "package.shared", *directives]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == status, done.stdout + done.stderr
        return {name for name in made.values() if stamp(tmp_path / name) != before[name]}

    run.folder = package
    return run


def stamp(path):
    return path.stat().st_mtime_ns if path.exists() else None


def test_only_what_has_changed_is_generated_again(sources):
    assert sources() == {"one.cxx", "two.c", "shared.c"}
    assert sources() == set()

    (sources.folder / "two.pxd").write_text("cdef class Two:\n    cdef long x\n")
    assert sources() == {"one.cxx", "two.c"}

    (sources.folder / "one.pyx").write_text("def ask(): return 1\n")
    assert sources() == {"one.cxx"}


def test_what_is_generated_alike_keeps_its_time(sources):
    sources()
    (sources.folder / "two.pxd").touch()

    assert sources() == set()


def test_other_directives_generate_what_they_change(sources):
    sources()

    assert sources("auto_pickle=False") == {"two.c"}


def test_an_error_ends_with_status_1_and_is_tried_again(sources):
    (sources.folder / "one.pyx").write_text("def ask(: return 1\n")
    sources(status=1)
    (sources.folder / "one.pyx").write_text("def ask(): return 1\n")

    assert "one.cxx" in sources()
