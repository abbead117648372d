"""The objects of deploy/kubernetes/kserve.yaml and examples/kserve, and the arguments of their containers."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[3]
RUNTIMES = ROOT / "deploy" / "kubernetes" / "kserve.yaml"
SERVICES = ROOT / "examples" / "kserve" / "services.yaml"
SCALING = ROOT / "examples" / "kserve" / "scaling.yaml"
GRAPHS = ROOT / "examples" / "kserve" / "graph.yaml"
FILES = (RUNTIMES, SERVICES, GRAPHS)
FORMATS = {  # what storageUri holds, with the names that others give it
    "triton": ("1/model.onnx",),
    "onnx": ("model.onnx",),
    "pytorch": ("model.pt", "model.pt2"),
    "tensorflow": (
        *("1/saved_model.pb", "saved_model.pb", "model.savedmodel/saved_model.pb"),
        "model.graphdef",
    ),
    "tensorrt": ("model.plan",),
    "openvino": ("model.xml", "1/model.xml", "openvino_detokenizer.xml"),
    "xgboost": ("model.bst", "model.json", "model.ubj"),
    "lightgbm": ("model.txt", "model.bst"),
    "catboost": ("model.cbm", "ranks.cbm"),
    "paddle": ("inference.json", "model.pdmodel", "inference.pdmodel"),
    "huggingface": ("model.safetensors", "model.safetensors.index.json"),
    "sklearn": ("model.joblib", "model.pkl", "model.pickle", "classes.joblib"),
    "gguf": ("model.gguf", "chat-q4.gguf"),
    "jax": ("model.jax",),
    "litert": ("model.tflite", "network.tflite"),
    "python": ("model.py", "1/model.py"),
    "skops": ("model.skops",),
}


def documents(path):
    return [each for each in yaml.safe_load_all(path.read_text()) if each]


def of_kind(path, *kinds):
    """Return name → object of the kinds in a file."""
    return {each["metadata"]["name"]: each for each in documents(path) if each["kind"] in kinds}


def runtimes():
    return of_kind(RUNTIMES, "ClusterServingRuntime", "ServingRuntime")


def container(runtime):
    (found,) = runtimes()[runtime]["spec"]["containers"]
    return found


def arguments(runtime, name, mount="/mnt/models", **ports):
    """Return the arguments of a runtime's container as KServe starts it for the service `name`.

    mount   folder in place of /mnt/models
    ports   of this machine, in place of those of the container: http, grpc, metrics
    """
    found = [each.replace("{{.Name}}", name) for each in container(runtime)["args"]]
    found = [each.replace("/mnt/models", str(mount)) for each in found]
    for protocol, port in ports.items():
        option = f"--{protocol}-port="
        found = [each for each in found if not each.startswith(option)] + [f"{option}{port}"]
    assert not [each for each in found if re.search(r"{{|}}", each)]
    return found
