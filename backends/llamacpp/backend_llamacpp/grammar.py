"""Grammars of llama.cpp for a Structure.

Structure ─► [grammar_of] ─► text of a grammar: GBNF, or Lark for LLGuidance
"""

from __future__ import annotations

import json

import llguidance
from core_generate import Structure, StructureRefused
from core_generate.guidance import guidance_schema

MOST_CHARACTERS = 2**20
MOST_DEPTH = 128  # of parentheses: llama.cpp reads grammars recursively
_LARK = "%llguidance {}\nstart: "


def grammar_of(structure: Structure) -> str:
    """Return the grammar that the text must match.

    llama.cpp reports an error of GBNF, but ignores a grammar of LLGuidance that it cannot compile. So those
    are compiled here first.
    Raises StructureRefused for what cannot be compiled, and for a grammar that is too large or deep.
    """
    if structure.schema is not None:
        # llama.cpp has an older LLGuidance than the one that compiles here.
        schema = json.dumps(guidance_schema(structure.schema, one_line=True))
        return _compiled(f"{_LARK}%json {schema}", "the JSON schema")
    if structure.regex:
        return _compiled(f"{_LARK}/{_in_one_line(structure.regex)}/", "the regular expression")
    if structure.choices:
        grammar = "root ::= " + " | ".join(map(_literal, structure.choices))
        _check_size(grammar, "the list of choices")
        return grammar
    if structure.grammar.lstrip().startswith("%llguidance"):
        return _compiled(structure.grammar, "the grammar")
    _check_depth(structure.grammar)
    return structure.grammar


def _compiled(grammar: str, what: str) -> str:
    """Return a grammar of LLGuidance unchanged. Raises StructureRefused if it is too large or wrong.

    what   what the grammar comes from, for the error
    """
    _check_size(grammar, what)
    if text := llguidance.LLMatcher.validate_grammar(grammar):
        raise StructureRefused(f"{what} cannot be compiled: {_reason(text)}")
    return grammar


def _reason(text: str) -> str:
    """Return the error of LLGuidance without the lines that show the grammar."""
    lines = [line.strip() for line in text.split("\n   1 |")[0].splitlines()]
    return " ".join(filter(None, lines)).partition(": ")[2] or text


def _in_one_line(regex: str) -> str:
    """Return a regular expression with slashes and line ends escaped, because both would end it in Lark."""
    escaped, after_backslash = [], False
    for character in regex:
        if character == "/" and not after_backslash:
            character = "\\/"
        elif character == "\n":
            character = "n" if after_backslash else "\\n"
        escaped.append(character)
        after_backslash = character == "\\" and not after_backslash
    return "".join(escaped)


def _literal(text: str) -> str:
    """Return a text as a literal of GBNF."""
    for character, escape in (
        ("\\", "\\\\"),
        ('"', '\\"'),
        ("\n", "\\n"),
        ("\r", "\\r"),
        ("\t", "\\t"),
    ):
        text = text.replace(character, escape)
    return f'"{text}"'


def _check_depth(grammar: str) -> None:
    _check_size(grammar, "the grammar")
    depth = deepest = 0
    for character in grammar:
        if character == "(":
            depth += 1
            deepest = max(deepest, depth)
        elif character == ")":
            depth -= 1
    if deepest > MOST_DEPTH:
        raise StructureRefused(
            f"the grammar has {deepest} nested parentheses, at most {MOST_DEPTH} are allowed"
        )


def _check_size(grammar: str, what: str) -> None:
    """Raise StructureRefused for a grammar that is too large; `what` is as of `_compiled`."""
    if len(grammar) > MOST_CHARACTERS:
        raise StructureRefused(
            f"{what} makes a grammar of {len(grammar)} characters, at most {MOST_CHARACTERS} are allowed"
        )
