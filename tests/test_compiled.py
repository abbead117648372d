"""Compiled modules are those of the sources: a stale one would be tested in their place."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


# A build of these that fails leaves Python alone, without a word.
DISTRIBUTIONS = [path.parent for path in ROOT.glob("*/*/CMakeLists.txt")]


def compiled_sources():
    """Every source that has a compiled module: .pyx, and .py with a .pxd beside it."""
    for folder in (ROOT / "core", ROOT / "frontends", *DISTRIBUTIONS):
        yield from folder.glob("**/*.pyx")
        yield from (p.with_suffix(".py") for p in folder.glob("**/*.pxd"))


SOURCES = sorted(
    path for path in {*compiled_sources()} if path.exists() and "build" not in path.parts
)


def module_of(source):
    """Return the name of a source's module."""
    parts = source.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts if parts[0] in ("core", "frontends") else parts[2:])


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_compiled_module_is_not_older_than_its_source(source):
    name = module_of(source)
    package = name.partition(".")[0]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")

    found = importlib.util.find_spec(name)

    if (found is None or not found.origin.endswith(".so")) and name in OPTIONAL:
        pytest.skip(f"{name} was not built: {OPTIONAL[name]}")
    assert found is not None, f"{name} was not built: run `make dev`"
    module = Path(found.origin)
    assert module.suffix == ".so", f"{name} is not compiled: run `make dev`"
    inputs = [source, *(p for p in (source.with_suffix(".pxd"),) if p.exists())]
    newest = max(inputs, key=lambda path: path.stat().st_mtime)
    assert module.stat().st_mtime >= newest.stat().st_mtime, (
        f"{newest.relative_to(ROOT)} has changed since {name} was built: run `make dev`"
    )


# Built only where their libraries are.
OPTIONAL = dict.fromkeys(
    [
        *(f"frontends.grpc.native.{name}" for name in ("connection", "engine_context", "handle")),
        *(f"core_router.grpc.native.{name}" for name in ("blocks", "link", "scan")),
        *(f"core_router.grpc.{name}" for name in ("call", "pool", "routed_call", "unary")),
    ],
    "libnghttp2-dev is not installed",
)


def test_optional_compiled_modules_are_sources():
    names = {module_of(path) for path in SOURCES}

    assert set(OPTIONAL) <= names
