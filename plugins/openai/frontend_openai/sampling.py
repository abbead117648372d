"""Which tokens a request wants: OpenAI's fields ─► the fields of sampling_parameters, by vLLM's names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson
from core_generate.chat import Tools, read_structured_outputs, with_answer
from core_generate.sampling import MOST_STOP_CHARACTERS, MOST_STOP_TOKENS

from frontend_openai.document import Document
from frontend_openai.errors import wrong

if TYPE_CHECKING:
    from core_generate.engine import Structure

MOST_CHOICES = 128  # of one request
MOST_TOKENS = 2**31 - 1
MOST_STOPS = 16
_MOST_BIASES = 1024
_MOST_STRUCTURE = 896 * 1024  # each choice of a request has a copy
_COMPLETION_TOKENS = 16  # OpenAI's default


@dataclass(slots=True)
class SamplingFields:
    """The fields for the model.

    values    by vLLM's names; fields that the request does not set are absent
    sources   name in `values` → path of the request's field, for errors
    """

    values: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)

    def set(self, name: str, value: Any, source: str = "") -> None:
        """Set a field; None leaves it absent. Raises FieldError for a value that engines refuse."""
        if value is not None:
            _check(name, value, source or name)
            self.values[name] = value
            self.sources[name] = source or name

    def set_structures(self, tools: Tools, answer: Structure | None, source: str) -> Tools:
        """Set what calls and the answer must match. Return the tools for the parser of the text.

        source   field of the request with `answer`
        Raises FieldError if something is set already that the tools do not permit.
        """
        if tools.choice == "auto":
            if self.structured:
                raise wrong(
                    self.sources["structured_outputs"],
                    f"no call of a tool could be written; send {source}, or tool_choice 'none'",
                )
            if answer is None:
                return tools
            tools = with_answer(tools, answer)
            self.set_structure(tools.structure, source)
            return tools
        self.set_structure(tools.structure, "tool_choice")
        self.set_structure(answer, source)
        return tools

    @property
    def structured(self) -> bool:
        """Return whether the text must match a structure."""
        return "structured_outputs" in self.values

    def set_structure(self, structure: Structure | None, source: str) -> None:
        """Set what the text must match. Raises FieldError if something is set already."""
        if structure is None:
            return
        if "structured_outputs" in self.values:
            first = self.sources["structured_outputs"]
            raise wrong(source, f"the text must match one form only; {first} asks for another")
        self.set("structured_outputs", _outputs_of(structure), source)


def read_sampling(document: Document, default_max_tokens: int, *, chat: bool) -> SamplingFields:
    """Take the fields out of a document. Raises FieldError.

    default_max_tokens   0 for OpenAI's default
    """
    found = SamplingFields()
    _read_max_tokens(found, document, default_max_tokens, chat)
    found.set("temperature", document.number("temperature", 0, 2))
    found.set("top_p", document.number("top_p", 0, 1))
    for name in ("frequency_penalty", "presence_penalty"):
        found.set(name, document.number(name, -2, 2) or None)  # 0 is no penalty
    found.set("seed", document.integer("seed", -(2**63), 2**63 - 1))
    found.set("stop", list(document.texts("stop", MOST_STOPS)) or None)
    found.set("logit_bias", _read_biases(document))
    # Fields that OpenAI does not have: clients send them by `extra_body`.
    found.set("top_k", document.integer("top_k", -1, MOST_TOKENS))
    found.set("min_p", document.number("min_p", 0, 1))
    found.set("repetition_penalty", document.number("repetition_penalty", 0.01, 100))
    found.set("min_tokens", document.integer("min_tokens", 0, MOST_TOKENS) or None)
    least, most = (found.values.get(name, 0) for name in ("min_tokens", "max_tokens"))
    if "max_tokens" in found.sources and most and least > most:
        raise wrong("min_tokens", f"{least} is more than max_tokens, which is {most}")
    found.set("stop_token_ids", _read_tokens(document, "stop_token_ids"))
    found.set("ignore_eos", document.flag("ignore_eos") or None)
    found.set("structured_outputs", _read_structure(document))
    return found


def _check(name: str, value: Any, source: str) -> None:
    """Raise FieldError for a value that engines refuse."""
    if name == "top_p" and not value:
        raise wrong(source, "0 leaves no token; expected a number above 0 to 1")
    if name == "structured_outputs" and (size := len(orjson.dumps(value))) > _MOST_STRUCTURE:
        raise wrong(source, f"its JSON has {size} bytes; at most {_MOST_STRUCTURE} are accepted")
    if name != "stop":
        return
    if "" in value:
        raise wrong(source, "a stop string is empty; each needs a character")
    if (characters := sum(map(len, value))) > MOST_STOP_CHARACTERS:
        raise wrong(
            source, f"{characters} characters; at most {MOST_STOP_CHARACTERS} are accepted in all"
        )


def _read_max_tokens(found: SamplingFields, document: Document, default: int, chat: bool) -> None:
    newer = document.integer("max_completion_tokens", 1, MOST_TOKENS) if chat else None
    older = document.integer("max_tokens", 1, MOST_TOKENS)
    if newer is not None:
        found.set("max_tokens", newer, "max_completion_tokens")
    elif older is not None:
        found.set("max_tokens", older)
    else:
        found.set("max_tokens", default or (None if chat else _COMPLETION_TOKENS))
        found.sources.pop("max_tokens", None)  # a model without it may ignore the default


def _read_biases(document: Document) -> dict[str, float] | None:
    found = document.take("logit_bias")
    if found is None:
        return None
    if type(found) is not dict or len(found) > _MOST_BIASES:
        raise wrong("logit_bias", f"expected an object of at most {_MOST_BIASES} tokens")
    for token, bias in found.items():
        if not (token.isascii() and token.isdecimal() and len(token) < 10):
            raise wrong("logit_bias", f"'{token[:50]}' is no token; expected a number as text")
        if type(bias) not in (int, float) or not -100 <= bias <= 100:
            raise wrong(f"logit_bias.{token}", "expected a number from -100 to 100")
    return found or None


def _read_tokens(document: Document, name: str) -> list[int] | None:
    found = document.take(name)
    if found is not None and not is_tokens(found):
        raise wrong(name, "expected a list of tokens, which are numbers from 0 on")
    if found and len(found) > MOST_STOP_TOKENS:
        raise wrong(name, f"{len(found)} tokens; at most {MOST_STOP_TOKENS} are accepted")
    return found or None


def is_tokens(value: Any) -> bool:
    """Return whether a value is a list of tokens."""
    return type(value) is list and all(type(each) is int and 0 <= each < 2**31 for each in value)


def _read_structure(document: Document) -> dict[str, Any] | None:
    """Return `structured_outputs` in one form: a schema that is a text is parsed."""
    structure = read_structured_outputs(document.take("structured_outputs"))
    return None if structure is None else _outputs_of(structure)


def _outputs_of(structure: Structure) -> dict[str, Any]:
    if structure.schema is True:
        return {"json_object": True}
    if structure.schema is not None:
        return {"json": structure.schema}
    if structure.choices:
        return {"choice": list(structure.choices)}
    return {"regex": structure.regex} if structure.regex else {"grammar": structure.grammar}
