"""Read an archive of TorchServe: .mar, .tar.gz, or a folder with MAR-INF.

archive ─► 1/source ─► manifest, handler, model-config.yaml ─► config.pbtxt, model.py, model_config.json
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from core.errors import invalid
from core_importers import documents
from core_importers.declared import Declared
from core_importers.draft import Draft
from core_importers.python_file import PythonFile
from core_importers.unpacking import unpack

MANIFEST = "MAR-INF/MANIFEST.json"

# Name of a handler of TorchServe, or of a class that handlers extend → the content type of its requests.
_CONTENT = {
    "base_handler": "application/json",
    "image_classifier": "",
    "image_segmenter": "",
    "object_detector": "",
    "text_classifier": "text/plain",
}
_PACKAGES = {
    "base_handler": ["torch"],
    "image_classifier": ["torch", "pillow"],
    "image_segmenter": ["torch", "pillow"],
    "object_detector": ["torch", "pillow"],
    "text_classifier": ["torchserve", "torch", "captum", "pyyaml", "psutil", "packaging"],
}
_REFUSED = {
    "dali_image_classifier": "it needs NVIDIA DALI pipelines of TorchServe",
    "vllm_handler": "it starts vLLM itself",
    "trt_llm_handler": "it starts TensorRT-LLM itself",
}
# What adapters/compat/ts has.
_STAND_IN = (
    "ts.context",
    "ts.handler_utils.timer",
    "ts.handler_utils.utils",
    "ts.protocol.otf_message_handler",
    "ts.torch_handler.base_handler",
    "ts.torch_handler.image_classifier",
    "ts.torch_handler.image_segmenter",
    "ts.torch_handler.object_detector",
    "ts.torch_handler.vision_handler",
    "ts.utils.util",
)
_STREAMS = "send_intermediate_predict_response"
# Keys of model-config.yaml that this server takes.
_TAKEN = {"minWorkers", "maxWorkers", "batchSize", "maxBatchDelay", "responseTimeout", "handler"}


def read(path: Path, draft: Draft) -> None:
    """Write the model of an archive into the draft.

    Raises CoreError(INVALID) for an archive without a manifest or handler, or one that cannot be served.
    """
    _unpacked(path, draft)
    manifest = documents.read_json(draft.source / MANIFEST)
    model = manifest.get("model")
    if not isinstance(model, dict) or not model.get("handler"):
        raise invalid(f"'{path}': {MANIFEST} names no handler; expected model.handler")
    runtime = str(manifest.get("runtime", "python")).lower()
    if not runtime.startswith("python"):
        raise invalid(f"'{path}' has the runtime '{runtime}': only handlers in Python can be taken")
    draft.name = str(model.get("modelName") or path.stem)
    _check_files(path, model, draft.source)
    handler = str(model["handler"])
    draft.kind = f"TorchServe archive, handler {handler}"
    settings = _settings(model, draft.source)
    own = _own_handler(handler, draft.source)
    missing = _builtin(handler, draft) if own is None else _custom(own, draft)
    draft.parameter("TORCHSERVE_HANDLER", handler)
    draft.tensors([Declared("data", "STRING", (1,))], [Declared("output", "STRING", (1,))])
    _configured(settings, draft)
    draft.adapter("torchserve")
    draft.stand_in("ts", "torchserve", missing)
    if settings:
        text = json.dumps(settings, indent=2, default=str)
        (draft.version / "model_config.json").write_text(text, "utf-8")
    if file := model.get("requirementsFile"):
        packages = documents.requirements_in(draft.source / str(file))
        draft.requirements(packages, f"source/{file}")


def _unpacked(path: Path, draft: Draft) -> None:
    """Put the files of the archive into 1/source. Raises CoreError(INVALID) without a manifest."""
    if path.is_dir():
        draft.copy(path, "source")
        return
    unpack(path, draft.source)
    if (draft.source / MANIFEST).is_file():
        return
    # In a .tar.gz of torch-model-archiver, all files are in one folder.
    inside = [each.parent.parent for each in draft.source.glob(f"*/{MANIFEST}")]
    if len(inside) != 1:
        raise invalid(f"'{path}' has no {MANIFEST}: it was not written by torch-model-archiver")
    whole = draft.source.rename(draft.version / "unpacked")
    (whole / inside[0].name).rename(draft.source)
    whole.rmdir()


def _check_files(path: Path, model: dict[str, Any], source: Path) -> None:
    for key in ("serializedFile", "modelFile", "requirementsFile", "configFile"):
        name = model.get(key)
        if name and not (Path(str(name)).name == name and (source / name).is_file()):
            raise invalid(f"'{path}': {MANIFEST} names the {key} '{name}', which is not in it")


def _own_handler(handler: str, source: Path) -> Path | None:
    """Return the file of a handler; None if the archive has no such file.

    handler   name, name.py or name:function
    """
    name = handler.partition(":")[0].rpartition("/")[2].removesuffix(".py")
    file = source / f"{name}.py"
    return file if name and file.is_file() else None


def _builtin(handler: str, draft: Draft) -> set[str]:
    """Write a handler of TorchServe itself into the draft. Return the modules that the stand-in lacks.

    Raises CoreError(INVALID) for an unknown handler and for those of _REFUSED.
    """
    if handler in _REFUSED:
        raise invalid(f"handler '{handler}' of TorchServe cannot be taken: {_REFUSED[handler]}")
    if handler not in _CONTENT:
        raise invalid(
            f"the archive has no handler '{handler}': neither the file {handler.partition(':')[0]}.py is "
            f"in it, nor is it one of TorchServe's own that can be taken: {', '.join(_CONTENT)}"
        )
    _content(handler, draft)
    draft.need(*_PACKAGES[handler])
    if handler == "base_handler":
        draft.parameter("SERVICE_ENVELOPE", "body")
        draft.notes.append(
            "base_handler gets the JSON of each request as a tensor. A TorchScript file is faster with "
            'backend: "pytorch", which takes tensors'
        )
    if handler != "text_classifier":
        return set()
    draft.notes.append("if source_vocab.pt was made by torchtext, torchtext must be installed too")
    return {f"ts.torch_handler.{handler}"}


def _custom(path: Path, draft: Draft) -> set[str]:
    """Write a handler of the archive into the draft.

    Return the names that Python files of the archive import of torchserve and the stand-in lacks.
    """
    file = PythonFile(path)
    names = {each.rpartition(".")[2] for each in file.imports()}
    draft.need("torch")
    base = next((each for each in _CONTENT if _class_of(each) in names - {"BaseHandler"}), None)
    if base is not None:
        _content(base, draft)
        draft.need(*_PACKAGES[base])
    elif "VisionHandler" not in names and "PIL" not in file.modules():
        draft.notes.append(
            "the handler gets the bytes of each request. If its clients send JSON or text, set the parameter "
            "CONTENT_TYPE in config.pbtxt to application/json or text/plain"
        )
    archived = [PythonFile(each) for each in sorted(path.parent.glob("*.py"))]
    draft.need(*(name for name in file.packages("ts")))
    if any(_STREAMS in each.path.read_text("utf-8", "replace") for each in archived):
        draft.config.model_transaction_policy.decoupled = True
        draft.notes.append("the handler streams: clients ask by gRPC streams or generate_stream")
    used = {name for each in archived for name in each.imports() if name.startswith("ts.")}
    return {name for name in used if not name.startswith(_STAND_IN)}


def _class_of(handler: str) -> str:
    """Return the class of a handler's module: ImageClassifier of image_classifier."""
    return "".join(word.title() for word in handler.split("_"))


def _content(handler: str, draft: Draft) -> None:
    if _CONTENT[handler]:
        draft.parameter("CONTENT_TYPE", _CONTENT[handler])


def _settings(model: dict[str, Any], source: Path) -> dict[str, Any]:
    name = model.get("configFile")
    return documents.read_yaml(source / str(name)) if name else {}


def _configured(settings: dict[str, Any], draft: Draft) -> None:
    """Write what model-config.yaml says about workers, batches and time limits into config.pbtxt.

    Add a note about other keys. Raises CoreError(INVALID) for a value that is no whole number, and for
    torchrun.
    """
    for key in ("minWorkers", "maxWorkers", "batchSize", "maxBatchDelay", "responseTimeout"):
        if key in settings and not isinstance(settings[key], int):
            raise invalid(f"model-config.yaml: {key} is {settings[key]!r}, expected a whole number")
    draft.batched(settings.get("batchSize", 1), settings.get("maxBatchDelay", 100) / 1e3)
    draft.instances(settings.get("minWorkers", 1))
    if "responseTimeout" in settings:
        draft.parameter("EXECUTE_TIMEOUT_SECONDS", str(settings["responseTimeout"]))
    if settings.get("parallelType") or settings.get("torchrun"):
        raise invalid(
            "model-config.yaml asks for torchrun (parallelType): one model in several processes cannot be "
            "taken"
        )
    if left := sorted(set(settings) - _TAKEN):
        draft.notes.append(f"model-config.yaml: only the handler sees {', '.join(left)}")
