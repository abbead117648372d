"""one_model: a model named m of files that a test writes, served in this process.

test ─► start(fill, config) ─► models/m/1, config.pbtxt ─► [Served] ─► AskedModel
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from core.backend import Backend
from core_testing.served import AskedModel, Served

Fill = Callable[[Path], object]
StartModel = Callable[..., AskedModel]


@contextmanager
def one_model(backend: Backend, name: str, folder: Path) -> Iterator[StartModel]:
    """Give start(fill, config=None, settings=None, **options), which serves a model until the block ends.

    backend   serves the model
    name      of the backend, as in config.pbtxt and --backend-config
    folder    gets the repository, `models`

    fill       writes the files of the version into the folder that it gets
    config     text of config.pbtxt; None names only the backend, "" writes no file
    settings   of --backend-config for this backend
    options    of the server, named with underscores

    A call of `start` raises CoreError if the model does not load.
    """
    with ExitStack() as running:

        def start(
            fill: Fill,
            config: str | None = None,
            settings: Mapping[str, str] | None = None,
            **options: Any,
        ) -> AskedModel:
            version = folder / "models" / "m" / "1"
            version.mkdir(parents=True)
            fill(version)
            text = f'backend: "{name}"' if config is None else config
            if text:
                (version.parent / "config.pbtxt").write_text(text)
            served = Served(
                backend, folder / "models", backend_config={name: settings or {}}, **options
            )
            running.enter_context(served).load("m")
            return AskedModel(served, "m")

        yield start
