"""Checks objects against the types of KServe's SDK, and those of KEDA and the Prometheus operator.

    python schema.py FILE…   prints a JSON list of what is wrong; [] if nothing is

Runs in the environment of `make test-kserve-sdk`. Wrong are unknown members, values of another type, and
members that are required and missing.
"""

import importlib
import json
import re
import sys

import kserve
import kserve.models
import kubernetes.client
import yaml

PLAIN = {"str": str, "bool": bool, "int": int, "float": (int, float)}
FREE = ("object", "ResourceQuantity", "datetime", "IntOrString")
OTHERS = {  # of packages with a pydantic model for each kind
    "keda.sh/v1alpha1": "cloudcoil.models.keda.v1alpha1",
    "monitoring.coreos.com/v1": "cloudcoil.models.prometheus_operator.v1",
}


def main(paths):
    found = []
    for path in paths:
        with open(path) as file:
            for each in yaml.safe_load_all(file):
                if each:
                    found += of(each)
    print(json.dumps(found))


def of(document):
    """Return what is wrong with an object; [] for one whose kind belongs to Kubernetes itself."""
    group, kind = document["apiVersion"], document["kind"]
    if group in OTHERS:
        module = importlib.import_module(OTHERS[group])
        return pydantic(getattr(module, kind), document)
    if group.startswith("serving.kserve.io/"):
        version = group.rpartition("/")[2].capitalize()
        return list(wrong(document, f"{version}{kind}", kind))
    return []


def pydantic(kind, document):
    try:
        read = kind.model_validate(document)
    except ValueError as error:
        return [f"{document['kind']}: {error}"]
    return list(
        lost(document, read.model_dump(by_alias=True, exclude_unset=True), document["kind"])
    )


def lost(given, read, path):
    """Yield a text for each member that a model has not read: it ignores those that it does not know."""
    if isinstance(given, dict) and isinstance(read, dict):
        for name, each in given.items():
            if name in read:
                yield from lost(each, read[name], f"{path}.{name}")
            else:
                yield f"{path}: unknown member {name!r}"
    elif isinstance(given, list) and isinstance(read, list):
        for number, (each, other) in enumerate(zip(given, read, strict=True)):
            yield from lost(each, other, f"{path}[{number}]")


def wrong(value, kind, path):
    """Yield a text for each part of a value that is not of a type of the SDK, by its OpenAPI name."""
    if (inner := re.fullmatch(r"[Ll]ist\[(.+)\]", kind)) is not None:
        if not isinstance(value, list):
            yield f"{path}: expected a list"
            return
        for number, each in enumerate(value):
            yield from wrong(each, inner[1], f"{path}[{number}]")
    elif (inner := re.fullmatch(r"[Dd]ict[(\[]str, (.+)[)\]]", kind)) is not None:
        if not isinstance(value, dict):
            yield f"{path}: expected an object"
            return
        for name, each in value.items():
            yield from wrong(each, inner[1], f"{path}.{name}")
    elif kind in PLAIN:
        if not isinstance(value, PLAIN[kind]) or (isinstance(value, bool) and kind != "bool"):
            yield f"{path}: expected {kind}, found {value!r}"
    elif kind not in FREE:
        yield from wrong_object(value, model(kind), path)


def model(kind):
    """Return the class of an OpenAPI name."""
    for module in (kserve, kserve.models, kubernetes.client):
        if hasattr(module, kind):
            return getattr(module, kind)
    raise LookupError(f"neither KServe's SDK nor Kubernetes' client has {kind}")


def wrong_object(value, kind, path):
    if not isinstance(value, dict):
        yield f"{path}: expected an object"
        return
    names = {name: attribute for attribute, name in kind.attribute_map.items()}
    for name, each in value.items():
        if name not in names:
            yield f"{path}: unknown member {name!r}"
        else:
            yield from wrong(each, kind.openapi_types[names[name]], f"{path}.{name}")
    try:  # the constructor refuses None for a member that is required
        kind(**{names[name]: each for name, each in value.items() if name in names})
    except ValueError as error:
        yield f"{path}: {error}"


if __name__ == "__main__":
    main(sys.argv[1:])
