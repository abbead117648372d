"""The configuration of one model: from config.pbtxt to what the server works with.

    config.pbtxt ─► parse_text ┐
                               ├─► fill ─► complete ─► normalise ─► validate ─► signature_of
    load request ─► parse_json ┘

text.py json_form.py     parse_text · parse_json, to_json
suggestion.py            "did you mean …?" in their errors
autofill.py              fill: name, backend, platform, file name from the files' names
formats.py               Formats: which file name belongs to which backend
conditions.py            conditions_of: which steps of an ensemble run on a condition
complete.py              complete: what a backend may add
normalise.py             normalise: defaults written out, instance groups resolved
validation/              validate, validate_source: one file for each area of rules
signature.py labels.py   signature_of: inputs and outputs for the rooms of a request
proto.py messages.py     the message classes, in a descriptor pool of our own
*.proto                  their source; `make proto` compiles each to a .binpb
"""

from core.config.autofill import entries, fill
from core.config.complete import complete
from core.config.formats import Format, Formats
from core.config.json_form import MOST_JSON_BYTES, config_too_large, parse_json, to_json
from core.config.messages import ModelConfig
from core.config.normalise import normalise
from core.config.signature import InputSpec, OutputSpec, Signature, signature_of
from core.config.states import StateSpec
from core.config.text import parse_text
from core.config.validation import validate, validate_source

__all__ = [
    "MOST_JSON_BYTES",
    "Format",
    "Formats",
    "InputSpec",
    "ModelConfig",
    "OutputSpec",
    "Signature",
    "StateSpec",
    "complete",
    "config_too_large",
    "entries",
    "fill",
    "normalise",
    "parse_json",
    "parse_text",
    "signature_of",
    "to_json",
    "validate",
    "validate_source",
]
