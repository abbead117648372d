"""The native example backends: built as wheels, and checked with the contract; their page shows their
code.
"""

import importlib
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from core_testing import Example
from core_testing.example import write_model
from core_testing.served import Served

from core.errors import CoreError

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "write" / "native-backends.md"
X = np.arange(12, dtype=np.float32).reshape(4, 3)
SUPPORTS = {"batching", "cpu"}
MEAN, DEVIATION = [1.0, 0.0, -2.0], [2.0, 1.0, 0.5]


def built(kind, folder):
    """Build the wheel of examples/backends/native_<kind>; return the folder where it is installed."""
    command = [
        *(
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
        ),
        *("--no-build-isolation", "--wheel-dir", str(folder)),
        *(f"--config-settings=build-dir={folder / 'build'}",),
        str(ROOT / "examples" / "backends" / f"native_{kind}"),
    ]
    # Cython is looked for beside this Python.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "PATH": path}
    )
    assert done.returncode == 0, done.stderr[-5000:]
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


def backend_in(site, kind):
    sys.path.insert(0, str(site))
    try:
        return importlib.import_module(f"backend_scaler_{kind}").backend
    finally:
        sys.path.remove(str(site))


@pytest.fixture(scope="module", params=["cython", "cpp"])
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def site(kind, tmp_path_factory):
    return built(kind, tmp_path_factory.mktemp(kind))


@pytest.fixture
def example(kind, site, tmp_path):
    (tmp_path / "scaler.json").write_text(json.dumps({"mean": MEAN, "deviation": DEVIATION}))
    expected = (X - np.float32(MEAN)) / np.float32(DEVIATION)
    return Example(backend_in(site, kind), tmp_path, inputs={"x": X}, expected={"y": expected})


def test_the_kit_accepts_an_installed_example(kind, site):
    done = subprocess.run(
        [sys.executable, "-m", "core_testing", f"scaler_{kind}", "-q"],
        env={**os.environ, "PYTHONPATH": str(site), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
        cwd=site,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_a_file_for_another_number_of_columns_is_an_error_of_the_request(
    example, tmp_path, tmp_path_factory
):
    (tmp_path / "scaler.json").write_text('{"mean": [0.0], "deviation": [1.0]}')
    repository = tmp_path_factory.mktemp("models")
    write_model(example, repository, SUPPORTS)

    with Served(example.backend, repository) as served:
        served.load()
        with pytest.raises(CoreError, match=r"scaler\.json has 1 columns, x has 3"):
            served.ask({"x": X})


def test_a_file_with_half_of_the_numbers_fails_the_load(example, tmp_path, tmp_path_factory):
    (tmp_path / "scaler.json").write_text('{"mean": [0.0, 1.0], "deviation": [1.0]}')
    repository = tmp_path_factory.mktemp("models")
    write_model(example, repository, SUPPORTS)

    with (
        Served(example.backend, repository) as served,
        pytest.raises(CoreError, match=r"scaler\.json has"),
    ):
        served.load()


def files():
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "examples/backends"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    native = re.compile(r"examples/backends/native_(cython|cpp)/")
    return [line for line in listed.stdout.splitlines() if native.match(line)]


def test_the_page_shows_the_unchanged_examples():
    blocks = re.findall(r"^`(examples/\S+)`:\n\n```\w+\n(.*?)^```$", PAGE.read_text(), re.M | re.S)

    assert blocks, "the page has no block under the name of a file"
    for name, text in blocks:
        assert text == (ROOT / name).read_text(), name
    assert {Path(name).suffix for name, _ in blocks} >= {".pyx", ".cpp", ".txt", ".toml", ".py"}


@pytest.mark.parametrize("kind", ["cython", "cpp"])
def test_an_example_is_short_enough_to_read(kind):
    lines = [
        len((ROOT / name).read_text().splitlines())
        for name in files()
        if f"native_{kind}/" in name and not name.endswith((".md", ".toml", "conformance.py"))
    ]

    assert 20 < sum(lines) < 100


def test_the_page_has_every_call_and_every_member():
    header = (ROOT / "core" / "include" / "core_abi.h").read_text()
    calls = re.findall(r"\(\*(\w+)\)\(", header[header.index("struct core_calls {") :])
    text = PAGE.read_text()

    assert len(calls) > 15
    assert [name for name in calls if f"`{name}" not in text] == []
