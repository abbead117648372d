"""Fixtures and marks for tests of models, backends and frontends. In a conftest.py or a test module:

    pytest_plugins = ["core_testing.plugin"]

The plugin does not register itself: pytest would then import core in every project of the environment.

model_repository   a folder for models, which a test fills
serve_repository   serve_repository(backend=None, **options): serve these models in this process
gpu                a mark: the test is skipped if this process sees no GPU
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from core.backend import Backend
from core.config import parse_text
from core.devices.visible import gpus
from core.errors import CoreError
from core_testing.served import Served

ServeRepository = Callable[..., Served]


class ModelRepository:
    """A folder with models, for --model-repository.

    path    the folder
    names   of the models, in the order in which they were added
    """

    def __init__(self, path: Path):
        self.path = path
        self.names: list[str] = []

    def add(
        self,
        name: str,
        config: str | None = None,
        files: Mapping[str, str | bytes] | None = None,
        *,
        version: int = 1,
    ) -> Path:
        """Add a model, or another version of it, and return the version's folder.

        config   text of config.pbtxt; None to write none
        files    path → content of the files in the version's folder
        """
        folder = self.path / name
        (folder / str(version)).mkdir(parents=True)
        if config is not None:
            (folder / "config.pbtxt").write_text(config, encoding="utf-8")
        for path, content in (files or {}).items():
            file = folder / str(version) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode() if isinstance(content, str) else content)
        if name not in self.names:
            self.names.append(name)
        return folder / str(version)

    def name_backend(self) -> None:
        """Add a backend name to each configuration without one, because the server finds backends by name."""
        for name in self.names:
            file = self.path / name / "config.pbtxt"
            text = file.read_text("utf-8") if file.exists() else ""
            try:
                config = parse_text(text, str(file))
            except CoreError:  # the load reports the error
                continue
            if not config.backend and not config.platform:
                file.write_text(f'{text}\nbackend: "under_test"\n', encoding="utf-8")


@pytest.fixture
def model_repository(tmp_path_factory: pytest.TempPathFactory) -> ModelRepository:
    """An empty model repository: model_repository.add(name, config, files)."""
    return ModelRepository(tmp_path_factory.mktemp("models"))


@pytest.fixture
def serve_repository(model_repository: ModelRepository) -> Iterator[ServeRepository]:
    """serve_repository(backend=None, **options): serve and load the models of model_repository.

    backend   serves all models and overrides their configurations; None for the installed backends
    options   options of the server, named with underscores

    Returns a core_testing.served.Served, whose methods send requests to the models. Raises the CoreError of
    a model that does not load. The server stops at the end of the test.
    """
    with ExitStack() as running:

        def serve(backend: Backend | None = None, **options: Any) -> Served:
            if backend is not None:
                model_repository.name_backend()
            served = running.enter_context(Served(backend, model_repository.path, **options))
            for name in model_repository.names:
                served.load(name)
            return served

        yield serve


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gpu: needs a GPU; skipped on machines without one")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") is not None and not gpus():
        pytest.skip("this process sees no GPU")
