"""The configuration of one model: read config.pbtxt, complete it and check it.

    config.pbtxt ─► parse_text ┐
                               ├─► fill ─► complete ─► normalise ─► validate ─► signature_of
    load request ─► parse_json ┘

text.py json_form.py     parse_text · parse_json, to_json
suggestion.py            "did you mean …?" in their errors
autofill.py              fill: set name, backend, platform and file name from the files' names
formats.py               Formats: map file names to backends
conditions.py            conditions_of: read the conditions of an ensemble's steps
complete.py              complete: copy the fields that a backend may change
normalise.py             normalise: write the defaults out, resolve instance groups
validation/              validate, validate_source: one file for each area of rules
signature.py labels.py   signature_of: describe inputs and outputs for the request pipeline
states.py                StateSpec: describe the implicit states of sequences
model_version.py         parse_version: read a version number that a client sends
proto.py messages.py     the message classes, in a private descriptor pool
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
