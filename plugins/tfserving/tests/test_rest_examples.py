"""REST: classify and regress, which take examples of features."""

import base64

import pytest
from frontend_tfserving.rest.values import tensor_of

from core import dtypes
from core.config import InputSpec


def b64(data):
    return {"b64": base64.b64encode(data).decode()}


def test_classify_has_label_and_score_of_each_class(rest):
    document = {"examples": [{"x": [0.25]}, {"x": [1.0]}]}

    assert rest.post("/v1/models/scores:classify", document) == (
        200,
        {"results": [[["0", 0.25], ["1", 0.75]], [["0", 1.0], ["1", 0.0]]]},
    )


def test_regress_has_a_value_for_each_example(rest):
    document = {"examples": [{"x": [1, 2]}, {"x": [3, 4]}]}

    assert rest.post("/v1/models/total:regress", document) == (200, {"results": [3.0, 7.0]})


def test_a_model_that_parses_examples_gets_them_serialized(rest):
    document = {
        "context": {"mood": "ä"},
        "examples": [{"age": 3, "size": [1, 2.5]}, {"image": {"b64": "/w=="}, "none": []}],
    }

    status, answer = rest.post("/v1/models/parser:classify", document)

    first, second = [row[0][0].encode("utf-8", "surrogateescape") for row in answer["results"]]
    assert status == 200
    assert b"age" in first and b"size" in first and b"mood" in first
    assert b"image" in second and b"none" in second


def test_a_feature_that_is_no_value_is_an_error(rest):
    for wrong in (True, [1, "a"], {"b65": "x"}, {"b64": "*"}, [[1]], None):
        status, answer = rest.post("/v1/models/parser:classify", {"examples": [{"age": wrong}]})
        assert status == 400 and answer["error"].startswith("the feature 'age' "), wrong


def test_a_feature_whose_name_is_no_text_is_an_error(rest):
    # NaN is read by a parser that takes half of a surrogate pair.
    body = b'{"examples": [{"age": NaN, "\\ud800": 1}]}'

    status, answer = rest.post("/v1/models/parser:classify", body)

    assert status == 400
    assert answer["error"].startswith(r"the feature '\ud800' has half of a surrogate pair")


@pytest.mark.parametrize("text", [b'"a"', b""])
def test_texts_in_too_many_levels_are_an_error(rest, text):
    body = b'{"instances": ' + b"[" * 66 + text + b"]" * 66 + b"}"

    status, answer = rest.post("/v1/models/parser:predict", body)

    assert status == 400
    assert "input 'inputs' has lists in more than 64 levels" in answer["error"]


def test_the_features_of_the_context_are_those_of_every_example(rest):
    document = {"context": {"x": [5]}, "examples": [{}, {}]}

    assert rest.post("/v1/models/total:regress", document) == (200, {"results": [5.0, 5.0]})


@pytest.mark.parametrize(
    ("feature", "examples"),
    [([0] * 10_000, 2001), ("x" * 1_000_000, 100), (b64(b"x" * 1_000_000), 100)],
)
def test_a_large_context_is_not_repeated_for_many_examples(rest, feature, examples):
    document = {"context": {"x": feature}, "examples": [{}] * examples}

    status, answer = rest.post("/v1/models/total:regress", document)

    assert status == 400
    assert "'context' is too large for so many examples" in answer["error"]


def test_a_thousand_candidates_may_share_the_features_of_a_user(rest):
    document = {"context": {str(number): 1 for number in range(150)}, "examples": [{}] * 1000}

    status, answer = rest.post("/v1/models/parser:classify", document)

    assert status == 200, answer
    assert len(answer["results"]) == 1000


def test_many_features_of_a_context_are_not_repeated_for_many_examples(rest):
    document = {"context": {str(number): "" for number in range(300)}, "examples": [{}] * 3334}

    status, answer = rest.post("/v1/models/parser:classify", document)

    assert status == 400
    assert "300 features for 3334 examples; at most 1000000 are accepted" in answer["error"]


def test_numbers_of_64_bits_without_a_sign_stay_exact():
    spec = InputSpec("x", dtypes.UINT64, (-1,))

    found = tensor_of(spec, [1, 2**63 + 1, 2**64 - 1])

    assert found.array.tolist() == [1, 2**63 + 1, 2**64 - 1]


@pytest.mark.parametrize(
    ("path", "document", "status", "text"),
    [
        ("total:regress", {"examples": []}, 400, "at least one example"),
        ("total:regress", {"examples": [1]}, 400, "example 0 must be an object"),
        ("total:regress", {"context": 1, "examples": [{}]}, 400, "'context' must be an object"),
        (
            "total:regress",
            {"context": {"x": [1]}, "examples": [{"x": [1]}]},
            400,
            "both have the feature 'x'",
        ),
        ("double:regress", {"examples": [{"x": [1, 2]}]}, 501, "expected one number for each"),
        ("mixed:classify", {"examples": [{"text": ["a"], "number": [1]}]}, 501, "cannot classify"),
    ],
)
def test_what_does_not_fit_is_refused(rest, path, document, status, text):
    found = rest.post(f"/v1/models/{path}", document)

    assert found[0] == status
    assert text in found[1]["error"]
