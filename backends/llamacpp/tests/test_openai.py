"""A real model over OpenAI's routes: LoRA adapters by the model's name, and images that it cannot read."""

import base64
import struct
import zlib

import numpy as np
import pytest
from gguf_files import gguf

import core

openai = pytest.importorskip("openai", reason="its client calls the server")
pytest.importorskip("frontend_openai", reason="it has the routes")

SIZE, RANK, LAYERS = 576, 4, 30
ADAPTERS = r"{\"noise\": \"noise.gguf\", \"none\": \"none.gguf\"}"
CONFIG = f"""
parameters {{ key: "context" value {{ string_value: "256" }} }}
parameters {{ key: "slots" value {{ string_value: "2" }} }}
parameters {{ key: "threads" value {{ string_value: "1" }} }}
parameters {{ key: "adapters" value {{ string_value: "{ADAPTERS}" }} }}
"""


def adapter(scale):
    """Return a LoRA adapter of SmolLM2 that adds random numbers to the queries of all layers."""
    random = np.random.default_rng(1)
    tensors = {}
    for layer in range(LAYERS):
        name = f"blk.{layer}.attn_q.weight"
        tensors[f"{name}.lora_a"] = random.normal(size=(RANK, SIZE)) * scale
        tensors[f"{name}.lora_b"] = random.normal(size=(SIZE, RANK)) * scale
    return gguf(
        {
            "general.architecture": "llama",
            "general.type": "adapter",
            "adapter.type": "lora",
            "adapter.lora.alpha": float(RANK),
        },
        tensors,
    )


def png(width, height):
    """Return an image of one colour, compressed to a few bytes for each row."""

    def chunk(kind, data):
        checked = kind + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(bytes(1 + width))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.fixture(scope="module")
def sdk(smollm2, tmp_path_factory):
    repository = tmp_path_factory.mktemp("models")
    folder = repository / "chat" / "1"
    folder.mkdir(parents=True)
    (folder / "model.gguf").symlink_to(smollm2)
    (folder / "noise.gguf").write_bytes(adapter(0.5))
    (folder / "none.gguf").write_bytes(adapter(0.0))
    (repository / "chat" / "config.pbtxt").write_text(CONFIG)
    with core.Server(model_repository=[str(repository)]) as server:
        server.start()
        port = server.serve(http_port=0)["http"]
        with openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none") as client:
            yield client


def answer(sdk, model, content="Name the capital of France."):
    found = sdk.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": content}],
        max_completion_tokens=16,
        temperature=0,
    )
    return found.choices[0].message.content


def test_an_adapter_is_chosen_by_the_name_of_the_model(sdk):
    plain = answer(sdk, "chat")

    assert "Paris" in plain
    assert answer(sdk, "chat:none") == plain
    assert answer(sdk, "chat:noise") != plain
    assert answer(sdk, "chat") == plain


def test_adapters_are_listed_and_others_are_unknown(sdk):
    assert [each.id for each in sdk.models.list()] == ["chat", "chat:noise", "chat:none"]
    with pytest.raises(openai.NotFoundError) as refused:
        answer(sdk, "chat:french")

    assert (refused.value.param, refused.value.code) == ("model", "model_not_found")


def test_a_prompt_of_tokens_is_repeated_as_its_text(sdk, engine):
    text = "The capital of France is"
    tokens = engine.tokenize(text)

    def ask(prompt, **fields):
        found = sdk.completions.create(
            model="chat", prompt=prompt, max_tokens=4, temperature=0, **fields
        )
        return found.choices[0].text

    assert ask(tokens, echo=True) == text + ask(tokens)
    with pytest.raises(openai.BadRequestError):
        ask([10**6], echo=True)


@pytest.mark.parametrize(
    ("width", "param", "said"),
    [
        (2, "messages", "takes no images"),
        (30_000, "messages[0].content[1].image_url.url", "the image has 30000 x 30000 pixels"),
    ],
)
def test_an_image_is_refused_before_it_is_decoded(sdk, width, param, said):
    url = "data:image/png;base64," + base64.b64encode(png(width, width)).decode()
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": url}},
    ]

    with pytest.raises(openai.BadRequestError, match=said) as refused:
        answer(sdk, "chat", parts)

    assert refused.value.param == param
