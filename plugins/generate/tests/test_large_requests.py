"""Requests with large inputs: read on a thread, refused by their size, cancelled meanwhile."""

import asyncio
import base64
import json
import struct
import threading

import numpy as np
import pytest
from core_generate import Description, Engine, EngineModel, Event, PromptTooLong, engine_backend
from core_generate import instance as instances
from core_generate.prompt_size import check_counted, check_prompt, check_texts, size_of
from core_generate.reading import read_generate
from core_generate.tokenizing import tokenizer_of
from core_testing.served import request_of

from core.dtypes import BYTES
from core.errors import CoreError, Kind
from core.tensor import Tensor

pytest_plugins = ["core_testing.plugin"]

LARGE = "a" * 70_000


def text(*values):
    return np.array([each.encode() for each in values], object)


def asked(prompt="abc", **sampling):
    return {"text_input": text(prompt), "sampling_parameters": text(json.dumps(sampling))}


class Ended:
    def cancel(self):
        pass


class Echo(Engine):
    """Writes how long its prompt is."""

    quick = True
    supports = frozenset({"images", "tokens"})

    def generate(self, prompt, sampling, emit):
        length = len(prompt.text) + len(prompt.tokens) + sum(map(len, prompt.images))
        emit(Event(str(length), finish="stop", prompt_tokens=1, count=1))
        return Ended()

    def tokenize(self, text, special=True):
        return [1, 2, 3]

    def embed(self, prompts):
        return np.zeros((len(prompts), 1), np.float32), [1] * len(prompts)

    def rank(self, query, documents):
        return np.zeros(len(documents), np.float32), 1


@pytest.fixture
def serve(model_repository, serve_repository):
    """A function (context, task) that serves the model m with the engine Echo."""

    def start(context=0, task="generate"):
        class Model(EngineModel):
            @classmethod
            def describe(cls, config, path, backend):
                return Description(task, supports=Echo.supports, context=context)

            def make_engine(self):
                return Echo()

        model_repository.add("m", "")
        return serve_repository(engine_backend(Model))

    return start


@pytest.fixture
def readers(monkeypatch):
    """The names of the threads that read requests, as a list that grows."""
    names = []

    def read(*args):
        names.append(threading.current_thread().name)
        return read_generate(*args)

    monkeypatch.setattr(instances, "read_generate", read)
    return names


def one(served, inputs):
    (found,) = served.stream({**inputs, "exclude_input_in_output": np.array([True])}, "m")
    return found["text_output"][0].decode()


def test_large_requests_are_read_on_a_thread_and_small_ones_on_the_loop(serve, readers):
    served = serve()
    file = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 2, 3) + bytes(60_000)
    tokens = {"prompt_token_ids": np.zeros(20_000, np.int32)}
    image = {**asked(), "image": np.array([base64.encodebytes(file)], object)}

    found = [one(served, each) for each in (asked(LARGE), tokens, image, asked())]

    assert found == ["70000", "20000", str(3 + len(file)), "3"]
    assert [each.startswith("m_") for each in readers] == [True, True, True, False]


def test_a_large_request_that_is_wrong_is_refused_as_a_small_one(serve):
    served = serve()

    with pytest.raises(CoreError, match="unknown field 'temprature'") as caught:
        served.stream(asked(LARGE, temprature=1), "m")

    assert caught.value.kind is Kind.INVALID
    assert one(served, asked(LARGE)) == "70000"


def test_a_request_that_is_cancelled_while_it_is_read_ends_with_that(serve, monkeypatch):
    reading, go_on, started = threading.Event(), threading.Event(), []

    def read(*args):
        reading.set()
        assert go_on.wait(60)
        return read_generate(*args)

    served = serve()
    monkeypatch.setattr(instances, "read_generate", read)
    generate = Echo.generate
    monkeypatch.setattr(Echo, "generate", lambda *args: (started.append(1), generate(*args))[1])

    async def act():
        request, ended = request_of(asked(LARGE), (), "m"), asyncio.Event()
        items = []

        def listen(item, final):
            items.append(item)
            if final:
                ended.set()

        served._server.models.infer(request).listen(listen)
        while not reading.is_set():
            await asyncio.sleep(0.001)
        request.cancel()
        go_on.set()
        await asyncio.wait_for(ended.wait(), 60)
        return items[-1]

    error = served._call(act())

    assert error.kind is Kind.CANCELLED
    assert started == []
    assert one(served, asked(LARGE)) == "70000"


# sizes ------------------------------------------------------------------------------


def test_a_prompt_that_cannot_fit_is_refused_before_it_is_read(serve, readers):
    served = serve(context=2000)

    with pytest.raises(CoreError, match="the prompt has 128001 bytes, the context is 2000 tokens"):
        served.stream(asked("a" * 128_001), "m")
    with pytest.raises(CoreError, match="the prompt has 65537 tokens, the context is 2000 tokens"):
        served.stream({"prompt_token_ids": np.zeros(65_537, np.int32)}, "m")

    assert readers == []
    assert one(served, asked("a" * 128_000)) == "128000"


@pytest.mark.parametrize("context", [0, 10, 5000])
def test_a_prompt_may_have_16_tokens_for_each_token_and_65536_at_least(context):
    most = max(65_536, 16 * context)

    def inputs(count):
        return {"prompt_token_ids": Tensor.of("prompt_token_ids", np.zeros(count, np.int32))}

    check_prompt(inputs(most), context)
    if context:
        with pytest.raises(PromptTooLong, match=f"has {most + 1} tokens.* {context} tokens"):
            check_prompt(inputs(most + 1), context)
    else:
        check_prompt(inputs(1_000_000), context)


@pytest.mark.parametrize("context", [0, 10, 5000])
def test_a_prompt_may_have_64_bytes_for_each_token_and_64_kib_at_least(context):
    most = max(65_536, 64 * context)

    def inputs(size):
        return {"text_input": Tensor.of("text_input", text("a" * size))}

    check_prompt(inputs(most), context)
    check_texts(["a" * most], "documents", context)
    if context:
        with pytest.raises(PromptTooLong, match=f"{most + 1} bytes.* {context} tokens"):
            check_prompt(inputs(most + 1), context)
        with pytest.raises(PromptTooLong, match=f"text 1 of 'documents' has {most + 1} bytes"):
            check_texts(["", "a" * (most + 1)], "documents", context)
    else:
        check_prompt(inputs(1_000_000), context)
        check_texts(["a" * 1_000_000], "documents", context)


@pytest.mark.parametrize("character", ["a", "ä", "あ", "🌲"])
def test_characters_of_more_bytes_make_a_text_longer(character):
    size = len(character.encode())

    check_texts([character * (65_536 // size)], "documents", 10)
    check_counted(character * (1_048_576 // size), 10)
    with pytest.raises(PromptTooLong, match=rf"has {size * (65_536 // size + 1)} bytes"):
        check_texts([character * (65_536 // size + 1)], "documents", 10)
    with pytest.raises(PromptTooLong, match=rf"has {size * (1_048_576 // size + 1)} bytes"):
        check_counted(character * (1_048_576 // size + 1), 10)


def test_texts_of_embeddings_and_scores_are_bounded_too(serve):
    served = serve(100, "rank")
    inputs = {"query": text("a"), "documents": text("a", "b" * 65_537)}

    with pytest.raises(CoreError, match="text 1 of 'documents' has 65537 bytes"):
        served.ask(inputs, name="m")


def test_a_text_whose_tokens_are_counted_may_be_longer_than_a_prompt(serve):
    served = serve(100)

    def tokens(size):
        request = request_of({"text_input": text("a" * size)}, (), "m")
        request.parameters["task"] = "tokenize"
        (found,) = served.send([request])
        if isinstance(found, CoreError):
            raise found
        return found["token_ids"]

    async def ask():
        return await tokenizer_of("m", 1).tokenize("a" * 1_048_577)

    assert len(tokens(1_048_576)) == 3
    for wrong in (lambda: tokens(1_048_577), lambda: served._call(ask())):
        with pytest.raises(
            CoreError, match=r"the text has 1048577 bytes, .* at most 1048576 bytes"
        ):
            wrong()


@pytest.mark.parametrize(
    "tensor",
    [
        Tensor.of("a", np.zeros((2, 3), np.int32)),
        Tensor.of("a", text("a", "bcd", "")),
        Tensor("a", BYTES, (1,), raw=struct.pack("<I", 3) + b"abc"),
        Tensor("a", BYTES, (0,), raw=b""),
    ],
)
def test_the_size_of_a_tensor_is_that_of_its_wire_form(tensor):
    assert size_of(tensor) == len(bytes(tensor.raw))
