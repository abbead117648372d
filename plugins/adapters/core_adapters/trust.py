"""Trust in pickles: a pickle can run any code, so the configuration must allow it."""

from __future__ import annotations

from typing import Any

from backend_python.api.errors import TritonModelException

PARAMETER = "TRUSTED"


def parameter(config: dict[str, Any], name: str) -> str:
    """Return the string value of a parameter of config.pbtxt; "" without the parameter."""
    value: str = config.get("parameters", {}).get(name, {}).get("string_value", "")
    return value


def check_pickle(config: dict[str, Any], file: str) -> None:
    """Raise TritonModelException, with the parameter to set, unless the configuration trusts pickles."""
    if parameter(config, PARAMETER).strip().lower() == "true":
        return
    raise TritonModelException(
        f"model '{config['name']}': '{file}' is a pickle, and to read a pickle is to run whatever "
        "code is in it; it was not read. If you trust everybody who could write that file, add to "
        f'config.pbtxt: parameters {{ key: "{PARAMETER}" value {{ string_value: "true" }} }}. '
        "A file that skops writes (model.skops) can be read without that."
    )


def trusted_types(config: dict[str, Any], file: str, unknown: list[str]) -> list[str]:
    """Return `unknown` if the configuration trusts all its types.

    unknown   types in a skops file that skops does not trust itself
    Raises TritonModelException with the types that the configuration does not trust.
    """
    text = parameter(config, PARAMETER).strip()
    if text.lower() == "true":
        return unknown
    named = [name.strip() for name in text.split(",")]
    missing = [name for name in unknown if name not in named]
    if not missing:
        return unknown
    raise TritonModelException(
        f"model '{config['name']}': '{file}' holds types that skops does not know to be harmless: "
        f"{', '.join(missing)}. If you trust them, add to config.pbtxt: parameters {{ "
        f'key: "{PARAMETER}" value {{ string_value: "{",".join(unknown)}" }} }}, or "true" for '
        "whatever is in the file."
    )
