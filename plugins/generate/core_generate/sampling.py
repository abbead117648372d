"""The input `sampling_parameters`: JSON with the names of vLLM → Sampling, adapter and suffix."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import orjson

from core.errors import CoreError, invalid
from core.similar import did_you_mean
from core_generate.engine import Sampling, Structure
from core_generate.levels import excess_of

INPUT = "sampling_parameters"
MOST_BYTES = 4 * 1024 * 1024  # of the whole JSON: more than its fields have within their own bounds
MOST_STOPS = 256
MOST_STOP_CHARACTERS = 4096  # of all stop strings together
MOST_STOP_TOKENS = 1024
MOST_BIASES = 65536
MOST_LOGPROBS = 1000
_MOST_SHOWN = 80  # characters of a wrong value, in an error

Read = Callable[[str, Any], Any]


class SamplingRequest(NamedTuple):
    """What `sampling_parameters` asks for.

    sampling          the fields of the JSON that Sampling has, the others as by default
    adapter, suffix   as in Prompt
    fields            each field of Sampling, Structure or Prompt that the engine must support → its name in
                      the JSON; fields whose values change nothing are left out
    """

    sampling: Sampling = Sampling()
    adapter: str = ""
    suffix: str = ""
    fields: Mapping[str, str] = {}


def read_sampling(text: bytes) -> SamplingRequest:
    """Return what a JSON object asks for. An empty text and fields that are null ask for nothing.

    Raises CoreError(INVALID), which names the field, for an unknown field or a wrong value, and for a text
    that is no JSON object, or longer than MOST_BYTES.
    """
    if len(text) > MOST_BYTES:
        raise invalid(f"{INPUT} has {len(text)} bytes, at most {MOST_BYTES} are accepted")
    if not text.strip():
        return SamplingRequest()
    try:
        document = orjson.loads(text)
    except ValueError as error:
        raise invalid(f"{INPUT} is no JSON: {error}") from None
    if type(document) is not dict:
        raise invalid(f"{INPUT} is {_kind(document)}, it must be a JSON object")
    if excess := excess_of(document):
        raise invalid(f"{INPUT} has {excess}")
    return _read(document)


def sampling_among(parameters: Mapping[str, Any]) -> SamplingRequest:
    """Return what those parameters of a request ask for that have the name of a field. Others have no effect.

    Clients of Triton's vLLM backend may send the fields so. Raises CoreError(INVALID) as `read_sampling`.
    """
    return _read({name: value for name, value in parameters.items() if name in _KNOWN})


def _read(document: Mapping[str, Any]) -> SamplingRequest:
    values: dict[str, Any] = {}
    fields: dict[str, str] = {}
    for name, value in document.items():
        if value is None:
            continue
        if name in _FIXED:
            _refuse_other(name, value)
        elif name in _STRUCTURES:
            if "structure" in values:
                raise _wrong(name, "given twice", "either structured_outputs or guided_decoding")
            values["structure"], field, member = _structure(name, value)
            fields[field] = f"{name}.{member}"
        elif name in _FIELDS:
            field, read = _FIELDS[name]
            found = read(name, value)
            if found != _DEFAULTS[field]:
                values[field] = found
                if found != _NEUTRAL.get(field):
                    fields[field] = name
        else:
            raise invalid(f"{INPUT} has the unknown field '{name}'{did_you_mean(name, _KNOWN)}")
    adapter, suffix = values.pop("adapter", ""), values.pop("suffix", "")
    sampling = Sampling(**values)
    if sampling.max_tokens is not None and sampling.min_tokens > sampling.max_tokens:
        raise _wrong("min_tokens", sampling.min_tokens, f"at most max_tokens {sampling.max_tokens}")
    return SamplingRequest(sampling, adapter, suffix, fields)


def _wrong(name: str, found: object, expected: str) -> CoreError:
    shown = str(found)
    if len(shown) > _MOST_SHOWN:
        shown = f"{shown[: _MOST_SHOWN - 3]}..."
    return invalid(f"{INPUT}: '{name}' is {shown}, it must be {expected}")


def _kind(value: Any) -> str:
    kinds = {bool: "a boolean", dict: "an object", list: "a list", str: "a text"}
    return kinds.get(type(value), "a number")


def _number(low: float, high: float, above: bool = False) -> Read:
    """Return a function (name, value) → number, which reads a number or its text.

    It raises CoreError(INVALID) for a number outside `low` to `high`, for an infinite one, and for other
    values. `above`: `low` itself is not allowed.
    """
    expected = f"a number {'above' if above else 'from'} {low:g} to {high:g}"
    if high == math.inf:
        expected = f"a number {'above' if above else 'of at least'} {low:g}"

    def read(name: str, value: Any) -> float:
        try:
            if type(value) not in (int, float, str):
                raise ValueError
            number = float(value)
        except (ValueError, OverflowError):
            raise _wrong(name, _quoted(value), expected) from None
        if not (low <= number <= high) or (above and number == low) or math.isinf(number):
            raise _wrong(name, _quoted(value), expected)
        return number

    return read


def _whole(low: int, high: int | None = None) -> Read:
    """Return a function (name, value) → int, which reads an int, its text, or a float such as 5.0.

    It raises CoreError(INVALID) for a number outside `low` to `high` (None: 2³¹ - 1), and for other values.
    """
    expected = f"a whole number from {low} to {high}"
    if high is None:
        high, expected = 2**31 - 1, f"a whole number of at least {low}"

    def read(name: str, value: Any) -> int:
        try:
            if type(value) is float and value.is_integer():
                value = int(value)
            if type(value) is str and len(value) <= 20:
                value = int(value)
        except ValueError:
            pass
        if type(value) is not int or not low <= value <= high:
            raise _wrong(name, _quoted(value), expected)
        return value

    return read


def _quoted(value: Any) -> str:
    return f"'{value}'" if type(value) is str else json.dumps(value)


def _json(value: Any) -> str:
    """Return the JSON of a value for `_wrong`, which cuts it: that of a long list has its begin only."""
    return json.dumps(value[:_MOST_SHOWN] if type(value) is list else value)


def _flag(name: str, value: Any) -> bool:
    if type(value) is str and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if type(value) is not bool:
        raise _wrong(name, _quoted(value), "true or false")
    return value


def _text(name: str, value: Any) -> str:
    if type(value) is not str:
        raise _wrong(name, _kind(value), "a text")
    return value


def _stops(name: str, value: Any) -> tuple[str, ...]:
    strings = [value] if type(value) is str else value
    if type(strings) is not list or not all(type(each) is str and each for each in strings):
        raise _wrong(name, _json(value), "a text that is not empty, or a list of such texts")
    if len(strings) > MOST_STOPS or sum(map(len, strings)) > MOST_STOP_CHARACTERS:
        raise _wrong(
            name,
            f"{len(strings)} texts of {sum(map(len, strings))} characters",
            f"at most {MOST_STOPS} texts of {MOST_STOP_CHARACTERS} characters",
        )
    return tuple(strings)


def _tokens(name: str, value: Any) -> tuple[int, ...]:
    if type(value) is not list or not all(
        type(each) is int and 0 <= each < 2**31 for each in value
    ):
        raise _wrong(name, _json(value), "a list of tokens, whole numbers of at least 0")
    if len(value) > MOST_STOP_TOKENS:
        raise _wrong(name, f"{len(value)} tokens", f"at most {MOST_STOP_TOKENS} tokens")
    return tuple(value)


def _bias(name: str, value: Any) -> dict[int, float]:
    if type(value) is not dict or len(value) > MOST_BIASES:
        raise _wrong(name, _kind(value), f"an object of at most {MOST_BIASES} tokens")
    number, token = _number(-100, 100), _whole(0)
    return {
        token(f"{name}.{key}", key): number(f"{name}.{key}", each) for key, each in value.items()
    }


def _top_k(name: str, value: Any) -> int:
    return max(0, int(_whole(-1)(name, value)))  # vLLM also writes -1 for all


def _structure(name: str, value: Any) -> tuple[Structure, str, str]:
    """Read `structured_outputs` or `guided_decoding`, an object or its JSON text.

    Return the structure, the field that is set in it, and the member of the object that sets it. Members that
    are null or false count as absent. Raises CoreError(INVALID) unless exactly one known member is left.
    """
    if type(value) is str:
        try:
            value = orjson.loads(value)
        except ValueError:
            value = None
        if excess := excess_of(value):
            raise invalid(f"{INPUT}: '{name}' has {excess}")
    members = ", ".join(_MEMBERS)
    if type(value) is not dict:
        raise _wrong(name, "no JSON object", f"an object with one of {members}")
    given = {key: each for key, each in value.items() if each is not None and each is not False}
    if unknown := [key for key in given if key not in _MEMBERS]:
        hint = did_you_mean(unknown[0], _MEMBERS)
        raise invalid(f"{INPUT}: '{name}' has the unknown member '{unknown[0]}'{hint}")
    if len(given) != 1:
        raise _wrong(name, f"an object with {', '.join(given) or 'no member'}", f"one of {members}")
    ((member, found),) = given.items()
    field, read = _MEMBERS[member]
    return Structure(**{field: read(f"{name}.{member}", found)}), field, member


def _schema(name: str, value: Any) -> Any:
    if type(value) is str:
        try:
            value = orjson.loads(value)
        except ValueError as error:
            raise invalid(f"{INPUT}: '{name}' is no JSON: {error}") from None
        if excess := excess_of(value):
            raise invalid(f"{INPUT}: '{name}' has {excess}")
    if type(value) is not dict and value is not True:
        raise _wrong(name, _kind(value), "a JSON schema, which is an object")
    return value


def _grammar(name: str, value: Any) -> str:
    if not _text(name, value):
        raise _wrong(name, "empty", "a text")
    return str(value)


def _choices(name: str, value: Any) -> tuple[str, ...]:
    if type(value) is not list or not value or not all(type(each) is str for each in value):
        raise _wrong(name, _json(value), "a list of texts with at least one")
    return tuple(value)


def _any_object(name: str, value: Any) -> bool:
    if not _flag(name, value):
        raise _wrong(name, "false", "true, or absent")
    return True


def _refuse_other(name: str, value: Any) -> None:
    if value != _FIXED[name]:
        expected = "absent" if _FIXED[name] is None else json.dumps(_FIXED[name])
        raise _wrong(name, _quoted(value), f"{expected}: engines have no other value of it")


_STRUCTURES = ("structured_outputs", "guided_decoding")
_MEMBERS: dict[str, tuple[str, Read]] = {
    "json": ("schema", _schema),
    "json_object": ("schema", _any_object),
    "regex": ("regex", _grammar),
    "grammar": ("grammar", _grammar),
    "choice": ("choices", _choices),
}
_FIELDS: dict[str, tuple[str, Read]] = {
    "max_tokens": ("max_tokens", _whole(1)),
    "min_tokens": ("min_tokens", _whole(0)),
    "temperature": ("temperature", _number(0, math.inf)),
    "top_p": ("top_p", _number(0, 1, above=True)),
    "top_k": ("top_k", _top_k),
    "min_p": ("min_p", _number(0, 1)),
    "frequency_penalty": ("frequency_penalty", _number(-2, 2)),
    "presence_penalty": ("presence_penalty", _number(-2, 2)),
    "repetition_penalty": ("repetition_penalty", _number(0, math.inf, above=True)),
    "seed": ("seed", _whole(-(2**63), 2**64 - 1)),
    "stop": ("stop", _stops),
    "stop_token_ids": ("stop_tokens", _tokens),
    "ignore_eos": ("ignore_eos", _flag),
    "logit_bias": ("logit_bias", _bias),
    "logprobs": ("logprobs", _whole(0, MOST_LOGPROBS)),
    "lora_name": ("adapter", _text),
    "suffix": ("suffix", _text),
}
_NOTHING = Sampling()
_DEFAULTS: dict[str, Any] = {field: getattr(_NOTHING, field, "") for field, _ in _FIELDS.values()}
# Values that change nothing, so that an engine without the field follows them, too.
_NEUTRAL = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}
# Fields of vLLM with the only value that means the same here.
_FIXED: dict[str, Any] = {
    "n": 1,
    "best_of": 1,
    "detokenize": True,
    "include_stop_str_in_output": False,
    "prompt_logprobs": None,
    "skip_special_tokens": True,
    "spaces_between_special_tokens": True,
}
_KNOWN = dict.fromkeys([*_FIELDS, *_STRUCTURES, *_FIXED])
