"""Parse config.pbtxt into a ModelConfig; errors give line, column and the nearest valid name."""

from __future__ import annotations

import re

from google.protobuf import text_format

from core.config.messages import ModelConfig
from core.config.suggestion import field_hint, value_hint
from core.errors import CoreError, invalid

BYTE_ORDER_MARK_FAULT = "it begins with a byte-order mark; save the file as UTF-8 without one"
_POSITION = re.compile(r"^\d+:\d+ : ")
_QUOTED_LINE = re.compile(r"^'.*?': (?=[A-Z])", re.DOTALL)
_NO_FIELD = re.compile(r'^Message type "([\w.]+)" has no field named "(.*)"\.$')
_NO_VALUE = re.compile(r'^Enum type "([\w.]+)" has no value named (.*)\.$')


def parse_text(text: str, origin: str) -> ModelConfig:
    """Parse protobuf text format into a ModelConfig.

    origin   how errors name the text, usually the path of the file
    Raises CoreError(INVALID) with a text that begins "failed to read text proto from <origin>", mostly with
    ":<line>:<column>". For an unknown field or enum value, it names the nearest one, if any.
    """
    if text.startswith("\ufeff"):
        raise invalid(f"failed to read text proto from {origin}:1:1: {BYTE_ORDER_MARK_FAULT}")
    config = ModelConfig()
    try:
        text_format.Parse(text, config)
    except text_format.ParseError as error:
        raise _explained(error, origin) from None
    except ValueError as error:
        raise _out_of_range(error, text, origin) from None
    except RecursionError:
        raise invalid(f"failed to read text proto from {origin}: nested too deeply") from None
    return config


def _out_of_range(error: ValueError, text: str, origin: str) -> CoreError:
    """Return the error for an enum number, at the first place of its digits: protobuf names none."""
    number = str(error).rpartition(" ")[2]
    before, found, _ = text.partition(number)
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    position = f":{line}:{column}" if found else ""
    return invalid(f"failed to read text proto from {origin}{position}: {error}")


def _explained(error: text_format.ParseError, origin: str) -> CoreError:
    found = _QUOTED_LINE.sub("", _POSITION.sub("", str(error)))
    if match := _NO_FIELD.match(found):
        found = field_hint(match[1], match[2])
    elif match := _NO_VALUE.match(found):
        found = value_hint(match[1], match[2])
    line, column = error.GetLine(), error.GetColumn()
    position = f":{line}:{column}" if line else ""
    return invalid(f"failed to read text proto from {origin}{position}: {found}")
