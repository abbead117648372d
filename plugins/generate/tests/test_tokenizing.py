"""What is known of an engine beside the queue of its model: the tokens of texts."""

import asyncio

import pytest
from backend_testing.letters import Letters, LettersModel, letters
from core_generate import engine_backend
from core_generate.tokenizing import tokenizer_of

from core.errors import CoreError, Kind

pytest_plugins = ["core_testing.plugin"]


@pytest.fixture
def serve(model_repository, serve_repository):
    """A function (config, backend) that adds the model m to a repository and serves it."""

    def start(config="", backend=letters):
        model_repository.add("m", config)
        return serve_repository(backend)

    return start


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
