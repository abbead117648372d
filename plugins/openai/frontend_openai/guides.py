"""The guide of TensorRT-LLM's models: what their text must match.

structured_outputs ─► inputs guided_decoding_guide_type and guided_decoding_guide
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import orjson

GUIDE_TYPE, GUIDE = "guided_decoding_guide_type", "guided_decoding_guide"
# Member of structured_outputs → type of the guide.
GUIDES = {
    "json": "json_schema",
    "json_object": "json_schema",
    "regex": "regex",
    "grammar": "ebnf_grammar",
    "choice": "ebnf_grammar",
}


def guide_of(structure: Mapping[str, Any]) -> dict[str, str | bytes]:
    """Return the values of both inputs for `structured_outputs`, which has one member.

    An object is asked for by a schema: the type `json` of the guide permits any JSON value.
    """
    ((member, value),) = structure.items()
    guide: str | bytes = value
    if member in ("json", "json_object"):
        guide = orjson.dumps(value if member == "json" else {"type": "object"})
    elif member == "choice":
        # The strings of XGrammar's EBNF have the escapes of JSON, but no pairs of surrogates.
        guide = "root ::= " + " | ".join(json.dumps(each, ensure_ascii=False) for each in value)
    return {GUIDE_TYPE: GUIDES[member], GUIDE: guide}
