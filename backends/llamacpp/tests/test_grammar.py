"""Grammars for structures."""

import pytest

pytest.importorskip("llguidance", reason="it compiles grammars")

from backend_llamacpp.grammar import MOST_CHARACTERS, grammar_of
from core_generate import Structure, StructureRefused
from core_generate.chat import structure as chat


def test_choices_are_literals():
    assert grammar_of(Structure(choices=['a"b', "c\\d\n"])) == 'root ::= "a\\"b" | "c\\\\d\\n"'


def test_the_most_choices_of_a_chat_are_accepted_though_each_character_is_escaped():
    texts = ['"' * (chat.MOST_CHARACTERS // chat.MOST_CHOICES)] * chat.MOST_CHOICES

    assert grammar_of(Structure(choices=texts)).count("|") == chat.MOST_CHOICES - 1


def test_choices_that_are_too_large_are_named():
    with pytest.raises(StructureRefused, match=r"^the list of choices makes a"):
        grammar_of(Structure(choices=["a" * (MOST_CHARACTERS // 2)] * 2))


@pytest.mark.parametrize(
    ("regex", "line"),
    [
        ("a/b", r"start: /a\/b/"),
        (r"a\/b", r"start: /a\/b/"),
        ("a\nb", r"start: /a\nb/"),
        (r"\\/", r"start: /\\\//"),
    ],
)
def test_a_regular_expression_stays_in_its_line(regex, line):
    assert grammar_of(Structure(regex=regex)) == "%llguidance {}\n" + line


def test_a_schema_becomes_a_grammar():
    grammar = grammar_of(Structure(schema={"type": "integer"}))

    assert grammar.startswith('%llguidance {}\nstart: %json {"type": "integer", "x-guidance": {')
    assert '"object"' in grammar_of(Structure(schema=True))


@pytest.mark.parametrize(
    ("structure", "reason"),
    [
        (Structure(schema={"type": "unknown"}), "the JSON schema.*Invalid type: unknown$"),
        (Structure(schema={"$ref": "https://x.example"}), "the JSON schema.*does not fetch"),
        (Structure(regex="(["), "the regular expression.*unclosed character class$"),
        (Structure(regex="(?=a)"), "the regular expression.*look-around"),
        (Structure(grammar="%llguidance {}\nstart: other"), "the grammar.*other"),
    ],
)
def test_what_cannot_be_compiled_is_refused_with_the_reason(structure, reason):
    with pytest.raises(StructureRefused, match=reason):
        grammar_of(structure)


@pytest.mark.parametrize(
    "structure",
    [
        Structure(grammar="(" * 1000),
        Structure(grammar="a" * (MOST_CHARACTERS + 1)),
    ],
)
def test_a_grammar_is_bounded(structure):
    with pytest.raises(StructureRefused, match="at most"):
        grammar_of(structure)
