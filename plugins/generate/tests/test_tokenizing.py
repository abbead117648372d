"""What is known of an engine beside the queue of its model: the tokens of texts."""

import asyncio
import contextlib
import threading

import pytest
from backend_testing.letters import Letters, LettersModel
from core_generate import engine_backend, tokenizing
from core_generate.tokenizing import Tokenizer, tokenizer_of

from core.errors import CoreError, Kind

pytest_plugins = ["core_testing.plugin"]


def of(served, name="m", version=1):
    async def find():
        return tokenizer_of(name, version)

    return served._call(find())


def test_the_tokenizer_of_a_version_is_found_while_it_is_loaded(serve):
    served = serve()
    tokenizer = of(served)

    tokens = served._call(tokenizer.tokenize("ab"))

    assert tokens.tolist() == [256, 97, 98]
    assert served._call(tokenizer.tokenize("ab", special=False)).tolist() == [97, 98]
    assert served._call(tokenizer.detokenize([97, 98])) == "ab"
    assert of(served, version=2) is None and of(served, "other") is None
    served.unload("m")
    assert of(served) is None
    with pytest.raises(CoreError, match="model 'm' is unloaded") as refused:
        served._call(tokenizer.tokenize("ab"))
    assert refused.value.kind is Kind.UNAVAILABLE


def test_a_server_does_not_find_the_engines_of_another(serve):
    serve()

    async def find():
        return tokenizer_of("m", 1)

    assert asyncio.run(find()) is None


class Failing(Letters):
    def tokenize(self, text, special=True):
        raise ValueError(text)

    def detokenize(self, tokens):
        raise NotImplementedError("it has no vocabulary")


class FailingModel(LettersModel):
    def make_engine(self):
        return Failing()


def test_errors_of_an_engine_are_those_of_its_model(serve):
    served = serve(backend=engine_backend(FailingModel))
    tokenizer = of(served)

    with pytest.raises(CoreError, match="engine of model 'm' failed: ValueError: ab") as failed:
        served._call(tokenizer.tokenize("ab"))
    with pytest.raises(CoreError, match="it has no vocabulary") as refused:
        served._call(tokenizer.detokenize([1]))

    assert (failed.value.kind, refused.value.kind) == (Kind.INTERNAL, Kind.UNSUPPORTED)


class Halving(Letters):
    def detokenize(self, tokens):
        return "a\ud800b"


class HalvingModel(LettersModel):
    def make_engine(self):
        return Halving()


def test_a_text_of_an_engine_has_no_lone_surrogates(serve):
    served = serve(backend=engine_backend(HalvingModel))

    assert served._call(of(served).detokenize([1])) == "a?b"


class Blocked(Letters):
    """Tokenizes a text when `go` is set.

    begun   released for each text that it begins
    """

    def __init__(self):
        super().__init__()
        self.begun = threading.Semaphore(0)
        self.go = threading.Event()
        self.texts = []

    def tokenize(self, text, special=True):
        self.texts.append(text)
        self.begun.release()
        assert self.go.wait(20)
        return super().tokenize(text, special)


@contextlib.asynccontextmanager
async def busy_tokenizer():
    """Yield a tokenizer with an engine that is blocked, the engine, and two tasks that use all threads."""
    engine = Blocked()
    tokenizer = Tokenizer("m", 1, engine, asyncio.get_running_loop())
    running = [asyncio.create_task(tokenizer.tokenize("ab")) for _ in range(2)]
    try:
        for _ in running:
            assert await asyncio.to_thread(engine.begun.acquire, timeout=20)
        yield tokenizer, engine, running
    finally:
        engine.go.set()
        await asyncio.to_thread(tokenizer.close)
        engine.close()


def test_a_bounded_number_of_texts_waits(monkeypatch):
    monkeypatch.setattr(tokenizing, "_MOST_ASKED", 3)

    async def ask():
        async with busy_tokenizer() as (tokenizer, engine, running):
            third = asyncio.create_task(tokenizer.tokenize("third"))
            await asyncio.sleep(0)
            with pytest.raises(
                CoreError, match="3 texts wait for the tokenizer of model 'm'"
            ) as found:
                await tokenizer.tokenize("more")
            third.cancel()  # its place is free again
            await asyncio.gather(third, return_exceptions=True)
            fourth = asyncio.create_task(tokenizer.tokenize("fourth"))
            await asyncio.sleep(0)
            engine.go.set()
            tokens = await asyncio.gather(*running, fourth)
            return found.value.kind, [len(each) for each in tokens], engine.texts

    assert asyncio.run(ask()) == (Kind.UNAVAILABLE, [3, 3, 7], ["ab", "ab", "fourth"])


def test_an_unload_does_not_wait_for_texts_that_have_not_begun():
    async def ask():
        async with busy_tokenizer() as (tokenizer, engine, running):
            waiting = asyncio.create_task(tokenizer.tokenize("late"))
            await asyncio.sleep(0)
            closing = asyncio.create_task(asyncio.to_thread(tokenizer.close))
            while tokenizer_of("m", 1) is not None:
                await asyncio.sleep(0.01)
            engine.go.set()
            with pytest.raises(CoreError, match="model 'm' is unloaded") as found:
                await waiting
            await closing
            tokens = await asyncio.gather(*running)
            return found.value.kind, [len(each) for each in tokens], engine.texts

    assert asyncio.run(ask()) == (Kind.UNAVAILABLE, [3, 3], ["ab", "ab"])
