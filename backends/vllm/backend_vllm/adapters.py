"""multi_lora.json: LoRA adapters by name, as Triton's vLLM backend reads them.

multi_lora.json ─► [read_adapters] ─► name → folder, or name at Hugging Face
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from backend_vllm.arguments import Arguments, read_object
from core.errors import invalid
from core.model_file import check_readable, not_found

FILE = "multi_lora.json"


def read_adapters(folder: Path, model: str, arguments: Arguments) -> Mapping[str, str]:
    """Return the adapters of a version; {} unless `enable_lora` is true in its model.json.

    Paths that exist beside the file become absolute.
    Raises CoreError that names the file for one that is missing or has another form, and for adapters
    without `enable_lora`.
    """
    file = folder / FILE
    if not arguments.get("enable_lora"):
        if file.is_file():
            raise invalid(
                f"model '{model}': '{file}' has adapters, and model.json does not turn them on; add "
                '"enable_lora": true there, or remove the file'
            )
        return {}
    if not file.is_file():
        raise not_found(file, model)
    check_readable(file, model)
    return {
        name: _place(file, model, name, value) for name, value in read_object(file, model).items()
    }


def _place(file: Path, model: str, name: str, value: object) -> str:
    expected = 'it must be a folder with an adapter, or a name at Hugging Face such as "owner/name"'
    if type(value) is not str or not value or not name:
        raise invalid(
            f"model '{model}': '{file}' has {value!r} as the adapter '{name}', {expected}"
        )
    path = file.parent / value
    if path.exists():
        return str(path.resolve())
    if Path(value).is_absolute() or value.startswith((".", "~")):
        raise invalid(
            f"model '{model}': '{file}' has '{value}' as the adapter '{name}', and there is no '{path}'; "
            f"{expected}"
        )
    return value
