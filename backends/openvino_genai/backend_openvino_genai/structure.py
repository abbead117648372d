"""StructuredOutputConfig of a Structure, checked by the same xgrammar that follows it.

Structure ─► [checked_structure] ─► StructuredOutputConfig
"""

from __future__ import annotations

import json
from typing import Any

import openvino_genai
from core_generate import Structure, StructureRefused

from backend_openvino_genai.pipeline import Pipeline
from backend_openvino_genai.schema import check_schema

MOST_CHARACTERS = 2**20
MOST_DEPTH = 128  # of brackets: xgrammar reads all forms recursively


def checked_structure(pipeline: Pipeline, structure: Structure) -> Any:
    """Return what the pipeline reads. Raises CoreError(INVALID) for what xgrammar refuses or ignores."""
    if structure.schema is not None:
        schema = {"type": "object"} if structure.schema is True else structure.schema
        check_schema(schema)
        found = {"json_schema": json.dumps(schema)}
        what = "the JSON schema"
    elif structure.regex:
        found, what = {"regex": structure.regex}, "the regular expression"
    elif structure.choices:
        found, what = {"grammar": _alternatives(structure.choices)}, "the list of choices"
    else:
        found, what = {"grammar": structure.grammar}, "the grammar"
    for text in found.values():
        _check_size(text, what)
    config = openvino_genai.StructuredOutputConfig(**found)
    pipeline.check_structure(config, what)
    return config


def _alternatives(choices: Any) -> str:
    """Return a grammar of xgrammar's EBNF; texts of JSON have its escapes, but for the slash."""
    return "root ::= " + " | ".join(json.dumps(each) if each else '""' for each in choices)


def _check_size(text: str, what: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise StructureRefused(
            f"{what} has {len(text)} characters, at most {MOST_CHARACTERS} are allowed"
        )
    depth = deepest = 0
    for character in text:
        if character in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in ")]}":
            depth -= 1
    if deepest > MOST_DEPTH:
        raise StructureRefused(
            f"{what} has {deepest} nested brackets, at most {MOST_DEPTH} are allowed"
        )
