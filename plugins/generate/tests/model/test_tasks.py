"""Tasks of an engine's model beside generating: tokens, embeddings, scores."""

import numpy as np
import pytest
from core_testing.served import request_of

from core.errors import CoreError, Kind

from .conftest import Plain, backend_of, parameters, text

pytest_plugins = ["core_testing.plugin"]


def request_for(task, inputs, **more):
    request = request_of(inputs, (), "m")
    request.parameters = {"task": task, **more}
    return request


def test_tokens_of_a_text_and_back(serve):
    served = serve()

    (tokens,) = served.send([request_for("tokenize", {"text_input": text("aé")})])
    (plain,) = served.send([request_for("tokenize", {"text_input": text("a")}, special=False)])
    back = {"prompt_token_ids": tokens["token_ids"]}
    (found,) = served.send([request_for("detokenize", back)])

    assert tokens["token_ids"].tolist() == [256, 97, 195, 169]
    assert plain["token_ids"].tolist() == [97]
    assert found["text_output"].tolist() == ["aé".encode()]


def test_an_unknown_task_is_refused(serve):
    (error,) = serve().send([request_for("tokenise", {"text_input": text("a")})])

    assert "has generate, tokenize, detokenize; did you mean 'tokenize'?" in error.message


def test_a_task_that_the_engine_lacks_is_unsupported(serve):
    served = serve(backend=backend_of(Plain))

    (error,) = served.send([request_for("tokenize", {"text_input": text("a")})])

    assert (error.kind, error.message) == (Kind.UNSUPPORTED, "Plain does not tokenize")


def test_embeddings_of_several_texts(serve):
    served = serve(parameters(task="embed"))

    found = served.ask({"text_input": text("ab", "c")}, name="m")

    assert found["embedding"].shape == (2, 8)
    assert np.linalg.norm(found["embedding"], axis=1) == pytest.approx([1, 1])
    assert found["num_input_tokens"].tolist() == [3, 2]


def test_scores_of_documents(serve):
    served = serve(parameters(task="rank"))

    found = served.ask({"query": text("a b"), "documents": text("b", "x", "b a")}, name="m")

    assert found["scores"].tolist() == [0.5, 0.0, 1.0]
    with pytest.raises(CoreError, match="no input 'documents', which this task needs"):
        served.ask({"query": text("a")}, name="m")
