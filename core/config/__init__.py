"""The configuration of one model: read config.pbtxt, complete it and check it.

config.pbtxt ─► parse_text ┐
                           ├─► fill ─► complete ─► normalise ─► validate ─► signature_of
load request ─► parse_json ┘
"""

from core.config.autofill import fill
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
    "fill",
    "normalise",
    "parse_json",
    "parse_text",
    "signature_of",
    "to_json",
    "validate",
    "validate_source",
]
