"""Distributions that are really there: folders with metadata, on the path."""

import importlib
import sys

import pytest

from core import plugins
from core.plugins import backends


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a distribution on the path: its name, its entry points, the text of its modules."""
    before = set(sys.modules)

    def put(distribution, entry_points, modules, version="1.0"):
        site = tmp_path / distribution
        info = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Name: {distribution}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(entry_points)
        for name, text in modules.items():
            (site / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(str(site))
        importlib.invalidate_caches()
        plugins.look_again()

    plugins.look_again()
    yield put
    for name in set(sys.modules) - before:
        del sys.modules[name]
    for name, plugin in plugins.hooks().list_name_plugin():
        module = getattr(plugin, "__name__", type(plugin).__module__)
        if module.startswith("plug_") or name.startswith("backend plug"):
            plugins.hooks().unregister(plugin)
    for name in [name for name in backends._imported if name.startswith("plug")]:
        del backends._imported[name]
    plugins.look_again()
