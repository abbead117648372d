"""Compiled modules load with glibc 2.28 and the libstdc++ of GCC 8, wherever they are compiled."""

import importlib.util
import platform
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

ROOT = Path(__file__).parents[1]
COMPILED = [
    ".",
    *sorted(str(each.parent.relative_to(ROOT)) for each in ROOT.glob("*/*/CMakeLists.txt")),
]

pytestmark = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or platform.machine() not in ("x86_64", "aarch64"),
    reason="the bindings in core/cmake/oldest_glibc.inc are for glibc on x86_64 and aarch64",
)


@pytest.fixture(scope="module")
def oldest_glibc():
    spec = importlib.util.spec_from_file_location("oldest_glibc", ROOT / ".ci" / "oldest_glibc.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def modules(name):
    """Return the compiled modules of a distribution. Skip the test if it is not installed."""
    try:
        files = metadata.distribution(name).files
    except metadata.PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    return [Path(file.locate()) for file in files if file.suffix == ".so"]


@pytest.mark.parametrize("folder", COMPILED)
def test_no_compiled_module_needs_a_newer_system(oldest_glibc, folder):
    name = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]["name"]
    found = modules(name)

    lines = [
        f"{module.name}: {line}"
        for module in found
        for line in oldest_glibc.too_new(module.read_bytes())
    ]

    assert found, f"{name} has no compiled module: run `make dev`"
    assert not lines, (
        f"Some modules of {name} do not load with glibc 2.28. Run `make dev` if they were compiled before "
        "the last change. Otherwise bind the symbols to an older version in core/cmake/oldest_glibc.inc, or "
        "do without them:\n" + "\n".join(lines)
    )


def test_a_module_tells_the_version_of_each_symbol(oldest_glibc):
    (module,) = (each for each in modules("core") if each.name.startswith("thread_queue."))

    needed = oldest_glibc.needed(module.read_bytes())

    first = {"x86_64": "GLIBC_2.2.5", "aarch64": "GLIBC_2.17"}[platform.machine()]
    assert {"sem_init", "sem_post", "sem_wait", "sem_destroy"} <= set(needed[first])


@pytest.mark.parametrize(
    "version, too_new",
    [
        ("GLIBC_2.28", False),
        ("GLIBC_2.29", True),
        ("GLIBC_2.3.4", False),
        ("GLIBC_ABI_DT_RELR", True),
        ("GLIBCXX_3.4.9", False),
        ("GLIBCXX_3.4.25", False),
        ("GLIBCXX_3.4.26", True),
        ("CXXABI_1.3.11", False),
        ("CXXABI_1.3.13", True),
        ("GCC_12.0.0", True),
        ("OPENSSL_3.0.0", False),
    ],
)
def test_versions_are_compared_as_numbers(oldest_glibc, version, too_new):
    assert oldest_glibc.is_too_new(version) is too_new


def test_a_symbol_that_is_too_new_is_named_with_its_module(
    oldest_glibc, monkeypatch, capsys, tmp_path
):
    monkeypatch.setitem(oldest_glibc.NEWEST, "GLIBC", "2.0")
    (module,) = (each for each in modules("core") if each.name.startswith("thread_queue."))
    with zipfile.ZipFile(tmp_path / "core-1-manylinux.whl", "w") as wheel:
        wheel.write(module, "core/native/thread_queue.so")
        wheel.writestr("core/native/__init__.py", "")

    status = oldest_glibc.main([str(tmp_path / "core-1-manylinux.whl")])

    printed = capsys.readouterr().out
    assert status == 1
    assert "core-1-manylinux.whl: core/native/thread_queue.so: sem_wait needs GLIBC_2." in printed
    assert "the newest allowed is 2.0" in printed


def test_other_files_are_refused(oldest_glibc):
    with pytest.raises(ValueError, match="not a 64-bit little-endian ELF file"):
        oldest_glibc.needed(b"\xcf\xfa\xed\xfe")
