"""Notes about models that another server wrote: what serves them here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from core import plugins
from core.config import ModelConfig
from frontends.commands.check.finding import Finding
from frontends.commands.check.settings import Place

_CAFFE2 = (
    "Caffe2, which Triton dropped in 21.08, too: export the model to ONNX where it was trained"
)
_MAR = "an archive of TorchServe: `core import FILE.mar REPOSITORY` makes a model of it"

_PLATFORMS = {
    "caffe2_netdef": _CAFFE2,
    "custom": "a custom backend of an old Triton: write one for core, see docs/write/write-a-backend.md",
}
_FILES = {
    "model.netdef": _CAFFE2,
    "init_model.netdef": _CAFFE2,
}


def notes_of(
    name: str, listing: Mapping[str, str], config: ModelConfig | None, place: Place
) -> Iterator[Finding]:
    """Yield a note for each sign of another server in a model's folder or configuration."""
    seen = set()
    platform = config.platform if config is not None else ""
    if text := _PLATFORMS.get(platform):
        seen.add(text)
        yield place.finding("note", "migration", text, "platform")
    for path in listing:
        last = path.rstrip("/").rpartition("/")[2] + ("/" if path.endswith("/") else "")
        text = _FILES.get(last, "")
        if last.endswith(".mar"):
            text = _MAR.replace("FILE.mar", str(place.report.folder / path))
        if last == "MLmodel":
            folder = place.report.folder / path.removesuffix(last)
            text = f"a model of MLflow: `core import {folder} REPOSITORY` makes a model of it"
        if last == "model-settings.json" and path.count("/") < 2:
            text = _mlserver()
        if text and text not in seen:
            seen.add(text)
            found = place.report.folder / path.rstrip("/")
            yield Finding(
                "note", "migration", f"'{path}' is {text}" if text[0] == "a" else text, found
            )


def _mlserver() -> str:
    serves = any(each.file == "model-settings.json" for each in plugins.formats())
    if serves:
        return "a model of MLServer: core serves such folders as they are, see docs/serve/other-classes.md"
    hint = plugins.install_hint("adapters").removeprefix("; try: ")
    text = "a model of MLServer: core serves such folders with the distribution core-adapters"
    return f"{text}: {hint}" if hint else text


def notes_beside(names: Mapping[str, bool], repository: str) -> Iterator[str]:
    """Yield a text for each file in a repository, beside its models, that another server wrote.

    names   of the entries of the repository → whether it is a folder
    """
    for name in sorted(names):
        if name.endswith(".mar") and not names[name]:
            yield _MAR.replace("FILE.mar", f"{repository}/{name}").replace("REPOSITORY", repository)
