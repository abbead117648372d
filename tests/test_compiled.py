"""Compiled modules are those of the sources: a stale one would be tested in their place."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def compiled_sources():
    """Every source that has a compiled module: .pyx, and .py with a .pxd beside it."""
    for folder in ("core", "frontends"):
        yield from (ROOT / folder).rglob("*.pyx")
        yield from (p.with_suffix(".py") for p in (ROOT / folder).rglob("*.pxd"))


SOURCES = sorted({path for path in compiled_sources() if path.exists()})


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_compiled_module_is_not_older_than_its_source(source):
    name = ".".join(source.relative_to(ROOT).with_suffix("").parts)

    found = importlib.util.find_spec(name)

    if found is None and name in OPTIONAL:
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
OPTIONAL = {
    f"frontends.grpc.native.{name}": "libnghttp2-dev is not installed"
    for name in ("connection", "engine_context", "handle")
}


def test_optional_compiled_modules_are_sources():
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in SOURCES}

    assert set(OPTIONAL) <= names
