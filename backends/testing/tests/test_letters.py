"""Tests of letters: its output is known exactly, so that tests of other parts can rely on it."""

import json
import math
from collections import Counter

import pytest
from backend_testing.letters import Letters
from backend_testing.letters.chances import ALPHABET, chances_of, drawn, left
from backend_testing.letters.json_instance import json_instance
from core_generate import Prompt, Sampling, Structure
from core_testing.engines.recorder import Recorder

from core.errors import CoreError, Kind


@pytest.fixture
def generate():
    """Return run(prompt, settings, **sampling), which generates with a new engine and records its events."""
    engines = []

    def run(prompt="abc", settings=None, **sampling):
        engines.append(Letters(**(settings or {})))
        asked = prompt if isinstance(prompt, Prompt) else Prompt(prompt)
        recorder = Recorder()
        engines[-1].generate(asked, Sampling(**sampling), recorder)
        return recorder.wait()

    yield run
    for each in engines:
        each.close()


@pytest.mark.parametrize(
    ("prompt", "text"),
    [("", "abcde"), ("abc", "defgh"), ("xy", "z abc"), ("ABC", "abcde"), ("é", "abcde")],
)
def test_the_alphabet_goes_on_after_the_last_letter_of_the_prompt(generate, prompt, text):
    found = generate(prompt, max_tokens=5)

    assert (found.text, found.finish, found.count) == (text, "length", 5)


def test_a_text_of_the_settings_is_the_answer(generate):
    found = generate("abc", {"text": "Grüße"}, max_tokens=50)

    assert (found.text, found.finish) == ("Grüße", "stop")
    assert found.count == len("Grüße".encode()) + 1  # and the token that ends it


def test_ignore_eos_and_min_tokens_go_on_with_letters(generate):
    endless = generate("abc", {"text": "x"}, max_tokens=4, ignore_eos=True)
    longer = generate("abc", {"text": "x"}, max_tokens=9, min_tokens=3)

    assert (endless.text, endless.finish) == ("xdef", "length")
    assert (longer.text, longer.finish) == ("xde", "stop")


def test_a_full_context_ends_the_text(generate):
    found = generate("abc", {"context": 10})

    assert (found.count, found.finish, found.events[-1].prompt_tokens) == (6, "length", 4)


def test_an_adapter_makes_letters_large(generate):
    settings = {"adapters": ["large"]}

    assert generate(Prompt("abc", adapter="large"), settings, max_tokens=3).text == "DEF"
    with pytest.raises(CoreError, match="there is no adapter 'small', there are \\['large'\\]"):
        generate(Prompt("abc", adapter="small"), settings)


def test_penalties_avoid_what_was_there():
    free = Sampling(temperature=0.0)
    held = Sampling(temperature=0.0, frequency_penalty=2.0)

    before = Counter({ALPHABET[0]: 3})

    assert chances_of(-1, before, free)[0][0] == ALPHABET[0]
    assert chances_of(-1, before, held)[0][0] == ALPHABET[1]


@pytest.mark.parametrize(
    ("sampling", "count"),
    [
        (Sampling(), 27),
        (Sampling(top_k=3), 3),
        (Sampling(top_p=0.75), 2),
        (Sampling(min_p=0.1), 4),
        (Sampling(top_k=3, top_p=0.1), 1),
    ],
)
def test_what_is_left_to_choose_from_sums_to_1(sampling, count):
    chances = left(chances_of(0, Counter(), sampling), sampling)

    assert len(chances) == count
    assert sum(math.exp(logprob) for _, logprob in chances) == pytest.approx(1)


def test_letters_are_drawn_by_their_probability():
    chances = chances_of(-1, Counter(), Sampling())

    found = Counter(drawn(chances, "seed", step) for step in range(4000))

    assert found[ALPHABET[0]] / 4000 == pytest.approx(0.5, abs=0.05)
    assert found[ALPHABET[1]] / 4000 == pytest.approx(0.25, abs=0.05)


@pytest.mark.parametrize(
    ("schema", "document"),
    [
        (True, {}),
        ({"type": "string"}, "a"),
        ({"enum": [3, 4]}, 3),
        ({"type": ["integer", "null"], "minimum": 5}, 5),
        ({"type": "array", "items": {"type": "boolean"}, "minItems": 2}, [False, False]),
        ({"type": "array", "items": {"type": "boolean"}, "minItems": 2.0}, [False, False]),
        ({"type": "array", "items": {"$ref": "#"}}, []),
        (
            {
                "properties": {"x": {"$ref": "#/$defs/y"}},
                "required": ["x"],
                "$defs": {"y": {"const": 1}},
            },
            {"x": 1},
        ),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, None),
    ],
)
def test_a_document_for_a_schema(generate, schema, document):
    found = generate("abc", max_tokens=99, structure=Structure(schema=schema))

    assert json_instance(schema) == document
    assert json.loads(found.text) == document


def pair(name):
    """Return the schema of an object whose two members are of a definition."""
    found = {"$ref": f"#/$defs/{name}"}
    return {"properties": {"x": found, "y": found}, "required": ["x", "y"], "type": "object"}


# 24 levels of two members: 16 million objects.
TREE = {**pair(0), "$defs": {**{str(at): pair(at + 1) for at in range(23)}, "23": {}}}


def cube(schema):
    """Return the schema of 1000 lists of 1000 lists of 1000 values of a schema."""
    for _ in range(3):
        schema = {"type": "array", "items": schema, "minItems": 1000}
    return schema


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"properties": {"x": {"$ref": "#"}}, "required": ["x"]}, "nested more than 50 deep"),
        ({"$ref": "#"}, r'schema\.\$ref: "#" leads back to itself'),
        ({"$ref": "#/x"}, r"schema\.\$ref: the schema has nothing at"),
        (
            {"$ref": "#/$defs/x/const", "$defs": {"x": {"const": {"properties": 3}}}},
            r"schema\.\$ref\.properties: expected an object, found 3",
        ),
        ({"type": "tree"}, "schema.type: expected"),
        ({"type": {"a": 1}}, 'schema.type: expected .* found {"a":1}'),
        ({"type": [["string"]]}, "schema.type: expected"),
        ({"type": 3}, "schema.type: expected .* found 3"),
        ({"anyOf": [3]}, r"schema.anyOf\[0\]: expected an object, found 3"),
        ({"properties": 3}, "schema.properties: expected an object, found 3"),
        ({"required": "x"}, "schema.required: expected a list"),
        (
            {"type": "array", "minItems": "2"},
            'schema: minItems is "2", expected an integer from 0 on',
        ),
        (
            {"type": "array", "minItems": 2.5},
            "schema: minItems is 2.5, expected an integer from 0 on",
        ),
        (
            {"type": "string", "minLength": -1},
            "schema: minLength is -1, expected an integer from 0 on",
        ),
        (TREE, "schema: its smallest document has more than 100,000 values"),
        (cube({"type": "null"}), "schema: its smallest document has more than 100,000 values"),
        (cube({"const": "a"}), "schema: its smallest document has more than 100,000 values"),
    ],
)
def test_a_schema_that_cannot_be_followed_is_refused(schema, message):
    with pytest.raises(CoreError, match=message) as refused:
        json_instance(schema)
    assert refused.value.kind is Kind.INVALID
