"""EngineKit: the base of the groups of tests of an engine: the example, its engine, and its server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from core_generate import Engine, EngineModel, Prompt, Sampling

from core.backend import Backend
from core_testing.engines.recorder import Recorder
from core_testing.example import MODEL, Arrays
from core_testing.plugin import ModelRepository
from core_testing.served import Served

GREEDY = Sampling(max_tokens=24, temperature=0.0)


@dataclass(frozen=True)
class EngineExample:
    """A small model that generates text.

    backend   serves the model; it need not be installed
    files     folder with the files of one model version; the kit copies it
    prompt    a text that the model continues with at least 24 tokens
    config    text of config.pbtxt
    """

    backend: Backend
    files: Path
    prompt: str
    config: str = ""


class EngineKit:
    """The base of every group of tests.

    exact   whether a generation with temperature 0 gives the same text beside others as alone; False for
            engines whose sums depend on the size of their batches
    most    largest number of streams in tests with many streams; one test uses up to four times as many
    alternatives    how many alternatives of each token the tests of log probabilities ask for; 0 for engines
                    that report the log probability of the token only
    """

    exact: ClassVar[bool] = True
    most: ClassVar[int] = 16
    alternatives: ClassVar[int] = 5

    @pytest.fixture
    def engine_example(self) -> EngineExample:
        """A small model. Every engine defines it."""
        raise NotImplementedError(f"{type(self).__name__} must define the fixture 'engine_example'")

    @pytest.fixture
    def generating(
        self, engine_example: EngineExample, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[Generating]:
        """The example, loaded in a server. A class whose model loads slowly may widen the scope."""
        with loaded(engine_example, tmp_path_factory.mktemp("models")) as found:
            yield found

    @pytest.fixture
    def generating_alone(self, generating: Generating) -> Generating:
        """The example in a server of its own, for a test that unloads it."""
        return generating


@contextmanager
def loaded(example: EngineExample, folder: Path) -> Iterator[Generating]:
    """Serve an example during the with statement. `folder` is empty, and becomes the model repository."""
    repository = ModelRepository(folder)
    files = {
        str(path.relative_to(example.files)): path.read_bytes()
        for path in example.files.rglob("*")
        if path.is_file()
    }
    repository.add(MODEL, example.config, files)
    repository.name_backend()
    models: list[EngineModel] = []
    model = example.backend.model

    class Kept(model):  # type: ignore[misc, valid-type]
        def load(self) -> None:
            super().load()
            models.append(self)

    Kept.__name__ = model.__name__
    with ExitStack() as running:
        example.backend.model = Kept
        running.callback(setattr, example.backend, "model", model)
        served = running.enter_context(Served(example.backend, repository.path))
        served.load()
        yield Generating(served, models[0], example.prompt)


class Generating:
    """A model with its engine.

    served   the server
    engine   the engine of its model
    prompt   the text of the example
    """

    def __init__(self, served: Served, model: EngineModel, prompt: str):
        self.served = served
        self.model = model
        self.engine: Engine = model.engine
        self.prompt = prompt

    def needs(self, *fields: str) -> None:
        """Skip the test unless Engine.supports has all of these words."""
        for each in fields:
            if each not in self.engine.supports:
                pytest.skip(f"Engine.supports has no '{each}'")

    def greedy(self, **changes: Any) -> Sampling:
        """Return GREEDY (24 tokens, temperature 0) with `changes`.

        The temperature is None if the engine does not support "temperature".
        """
        found = replace(GREEDY, **changes)
        return found if "temperature" in self.engine.supports else replace(found, temperature=None)

    def begin(
        self, sampling: Sampling | None = None, prompt: Prompt | None = None
    ) -> tuple[Recorder, Any]:
        """Start a generation. Return the Recorder of its events and the Generation.

        sampling, prompt   None for `greedy()` and for the prompt of the example
        """
        recorder = Recorder()
        generation = self.engine.generate(
            prompt or Prompt(self.prompt), sampling or self.greedy(), recorder
        )
        return recorder, generation

    def ended(self, sampling: Sampling | None = None, prompt: Prompt | None = None) -> Recorder:
        """Run a generation to its end and return the Recorder of its events; arguments as in `begin`.

        Raises the CoreError that ends the generation.
        """
        return self.begin(sampling, prompt)[0].wait()

    def inputs(self, *flags: str, **sampling: Any) -> Arrays:
        """Return the tensors of a request with the prompt of the example.

        flags      names of BOOL inputs that are true
        sampling   sampling parameters; by default 24 tokens, with temperature 0 if the engine supports that
        """
        parameters = {"max_tokens": 24, **sampling}
        if "temperature" in self.engine.supports:
            parameters.setdefault("temperature", 0)
        return inputs_of(self.prompt, parameters, flags)


def inputs_of(prompt: str, parameters: Mapping[str, Any], flags: tuple[str, ...]) -> Arrays:
    """Return the tensors of a request of the task "generate"; `flags` are names of inputs that are true."""
    found = {
        "text_input": np.array([prompt.encode()], object),
        "sampling_parameters": np.array([json.dumps(parameters).encode()], object),
    }
    return found | {each: np.array([True]) for each in flags}


def text_of(answers: list[Arrays]) -> str:
    """Return the texts of all responses, joined."""
    return b"".join(each["text_output"][0] for each in answers).decode()
