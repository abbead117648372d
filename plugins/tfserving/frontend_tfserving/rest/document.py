"""The documents of predict, classify and regress ↔ tensors of all examples.

row format      {"instances": [example, …]}   ↔  {"predictions": [row, …]}
column format   {"inputs": tensor or {name: tensor}}  ↔  {"outputs": tensor or {name: tensor}}
examples        {"examples": [{feature: value}, …], "context": {feature: value}}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.errors import invalid
from core.similar import did_you_mean
from core.tensor import Buffer, Tensor
from frontend_tfserving.rest.values import read_json, tensor_of, values_of
from frontend_tfserving.serialized import (
    BYTES_PER_COPY,
    MOST_CONTEXT_BYTES,
    MOST_CONTEXT_FEATURES,
    example_of,
    parsed_by_model,
)
from frontend_tfserving.serialized import tensor_of as serialized
from frontend_tfserving.signatures import sends_vectors

if TYPE_CHECKING:
    from core.config import Signature


@dataclass(frozen=True)
class Asked:
    """What a document asks for.

    inputs      with all examples
    in_rows     whether the response is in row format
    examples    number of examples; 0 in column format
    vectors     whether all outputs with one value in each row are vectors
    """

    inputs: Mapping[str, Tensor]
    in_rows: bool
    examples: int
    vectors: bool = False


def members_of(body: Buffer) -> dict[str, Any]:
    """Return the members of a body. Raises CoreError(INVALID) if it is no JSON object. Thread-safe."""
    found = read_json(body)
    if type(found) is not dict:
        raise invalid("the request body must be a JSON object")
    return found


def signature_name(members: Mapping[str, Any]) -> str:
    """Return the member `signature_name`, "" without one. Raises CoreError(INVALID) for another type."""
    found = members.get("signature_name", "")
    if type(found) is not str:
        raise invalid("'signature_name' must be a string")
    return found


def read_predict(members: Mapping[str, Any], signature: Signature) -> Asked:
    """Return what a document of predict asks for. Raises CoreError(INVALID), which names what is wrong."""
    rows, columns = members.get("instances"), members.get("inputs")
    if (rows is None) == (columns is None):
        raise invalid(
            "the request body must have either 'instances' or 'inputs', and not both"
            if rows is not None
            else "the request body has neither 'instances' nor 'inputs'"
        )
    if rows is not None:
        if type(rows) is not list or not rows:
            raise invalid("'instances' must be a list with at least one example")
        inputs = _inputs(_columns(rows, signature), signature)
        return Asked(inputs, True, len(rows), sends_vectors(signature, inputs))
    if type(columns) is not dict or _is_bytes(columns):
        columns = {_only_input(signature, "'inputs' without names"): columns}
    inputs = _inputs(columns, signature)
    return Asked(inputs, False, 0, sends_vectors(signature, inputs))


def read_examples(members: Mapping[str, Any], signature: Signature) -> Asked:
    """Return what a document of classify or regress asks for.

    A feature is the input of its name, unless the model parses examples itself. The features of `context`
    are those of every example. Raises CoreError(INVALID), which names what is wrong.
    """
    examples, context = members.get("examples"), members.get("context", {})
    if type(examples) is not list or not examples:
        raise invalid("the request body must have 'examples', a list with at least one example")
    if type(context) is not dict:
        raise invalid("'context' must be an object")
    if len(context) * len(examples) > MOST_CONTEXT_FEATURES:
        raise invalid(
            f"'context' has {len(context)} features for {len(examples)} examples; at most "
            f"{MOST_CONTEXT_FEATURES} are accepted in all: send fewer examples in a request"
        )
    for number, example in enumerate(examples):
        if type(example) is not dict:
            raise invalid(f"example {number} must be an object of features")
        if twice := sorted(example.keys() & context.keys()):
            raise invalid(f"example {number} and 'context' both have the feature '{twice[0]}'")
    if _byte_size(context) * len(examples) > MOST_CONTEXT_BYTES:
        raise invalid(
            "'context' is too large for so many examples; send fewer of them in a request"
        )
    rows = [{**context, **example} for example in examples]
    if (spec := parsed_by_model(signature, rows[0].keys())) is not None:
        examples = [example_of(row).SerializeToString() for row in rows]
        return Asked({spec.name: serialized(spec, examples)}, True, len(rows))
    return Asked(_inputs(_columns(rows, signature), signature), True, len(rows))


def context_bytes(members: Mapping[str, Any]) -> int:
    """Return as how many bytes the copies of `context` count, one for each example."""
    examples, context = members.get("examples"), members.get("context")
    if type(examples) is not list or type(context) is not dict:
        return 0
    return BYTES_PER_COPY * len(context) * len(examples)


def _byte_size(features: Mapping[str, Any]) -> int:
    """Return the bytes of all texts, and 8 for every other value. Not by recursion: lists may be deep."""
    size, level = 0, [*features, *features.values()]
    while level:
        deeper: list[Any] = []
        for each in level:
            size += len(each.encode("utf-8", "surrogatepass")) if type(each) is str else 8
            if type(each) is list:
                deeper.extend(each)
            elif type(each) is dict:
                deeper.extend(each.values())
        level = deeper
    return size


def _columns(rows: Sequence[Any], signature: Signature) -> dict[str, list[Any]]:
    """Return the values of each input, in the order of the examples."""
    first = rows[0]
    if type(first) is not dict or _is_bytes(first):
        name = _only_input(signature, "examples without names of inputs")
        if any(type(row) is dict and not _is_bytes(row) for row in rows):
            raise invalid("some examples of 'instances' are objects, others are not")
        return {name: list(rows)}
    for number, row in enumerate(rows):
        if type(row) is not dict or row.keys() != first.keys():
            raise invalid(
                f"example {number} has other inputs than the first one, which has {', '.join(first)}"
            )
    return {name: [row[name] for row in rows] for name in first}


def _is_bytes(value: Mapping[str, Any]) -> bool:
    return value.keys() == {"b64"}


def _only_input(signature: Signature, what: str) -> str:
    required = [each.name for each in signature.inputs.values() if not each.optional]
    names = required if len(required) == 1 else list(signature.inputs)
    if len(names) != 1:
        raise invalid(
            f"{what} need a model with one input; model '{signature.name}' has {', '.join(names)}"
        )
    return names[0]


def _inputs(columns: Mapping[str, Any], signature: Signature) -> dict[str, Tensor]:
    found = {}
    for name, value in columns.items():
        if (spec := signature.inputs.get(name)) is None:
            hint = did_you_mean(name, signature.inputs)
            raise invalid(
                f"model '{signature.name}' has no input '{name}'; it has {', '.join(signature.inputs)}{hint}"
            )
        found[name] = tensor_of(spec, value)
    return found


def predictions(outputs: Mapping[str, Tensor], examples: int) -> dict[str, Any]:
    """Return the document of outputs in row format.

    Raises CoreError(INVALID) if an output has not a row for each example.
    """
    for tensor in outputs.values():
        if not tensor.shape or tensor.shape[0] != examples:
            raise invalid(
                f"output '{tensor.name}' has the shape {list(tensor.shape)}, which has no row for each of "
                f"{examples} examples: send 'inputs' instead of 'instances'"
            )
    values = {name: values_of(tensor) for name, tensor in outputs.items()}
    if len(values) == 1:
        (only,) = values.values()
        return {"predictions": only}
    rows = [{name: each[i] for name, each in values.items()} for i in range(examples)]
    return {"predictions": rows}


def columns(outputs: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return the document of outputs in column format."""
    values = {name: values_of(tensor) for name, tensor in outputs.items()}
    if len(values) == 1:
        (only,) = values.values()
        return {"outputs": only}
    return {"outputs": values}
