"""The definitions of KServe's kinds (CRDs), as a cluster has them: what their schemas say of an object."""

import os
from pathlib import Path
from typing import Any

import jsonschema
import yaml

FOLDER = os.environ.get("CORE_KSERVE_CRDS", "")
_PARTS = ("properties", "additionalProperties", "items")


def schemas():
    """Return (apiVersion, kind) → JSON schema, of the files below CORE_KSERVE_CRDS.

    Raises FileNotFoundError if none of them is a definition of KServe.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for path in sorted(Path(FOLDER).rglob("*.yaml")):
        for each in yaml.load_all(path.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if not each or each.get("kind") != "CustomResourceDefinition":
                continue
            spec = each.get("spec", {})
            for version in spec.get("versions", ()):  # patches of definitions have none
                key = f"{spec['group']}/{version['name']}", spec["names"]["kind"]
                found[key] = closed(version["schema"]["openAPIV3Schema"], is_root=True)
    if not any(version.startswith("serving.kserve.io/") for version, _ in found):
        raise FileNotFoundError(
            f"found no CustomResourceDefinition of serving.kserve.io in '{FOLDER}'; expected the folder "
            "config/crd/full of KServe's repository, with its *.yaml"
        )
    return found


def closed(schema, is_root=False):
    """Return a schema that refuses members it does not name: a cluster would drop them in silence."""
    made = {name: each for name, each in schema.items() if name not in _PARTS}
    made.pop("format", None)  # such as int32
    if schema.get("x-kubernetes-int-or-string"):
        made.pop("anyOf", None)
        made["type"] = ["integer", "string"]
    if (properties := schema.get("properties")) is not None:
        made["properties"] = {name: closed(each) for name, each in properties.items()}
        if is_root:
            made["properties"]["metadata"] = {"type": "object"}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            made["additionalProperties"] = False
    if isinstance(values := schema.get("additionalProperties"), dict):
        made["additionalProperties"] = closed(values)
    if (items := schema.get("items")) is not None:
        made["items"] = closed(items)
    return made


def wrong(document, schema):
    """Return a text for each part of an object that its schema refuses."""
    found = jsonschema.Draft7Validator(schema).iter_errors(document)
    return [f"{'.'.join(map(str, each.absolute_path))}: {each.message}" for each in found]
