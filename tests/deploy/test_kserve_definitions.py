"""The objects for KServe, by the definitions (CRDs) of KServe. They have no package: a folder names them.

git clone --depth=1 https://github.com/kserve/kserve /tmp/kserve
make test-kserve-sdk CRDS=/tmp/kserve/config/crd/full
"""

import functools
import operator

import pytest

from tests.deploy.kserve_sdk import definitions
from tests.deploy.kserve_sdk.objects import FILES, documents

real = pytest.mark.skipif(
    not definitions.FOLDER, reason="CORE_KSERVE_CRDS names no folder with the CRDs of KServe"
)
KSERVE = "serving.kserve.io/"
SMALL = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "apiVersion": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "properties": {
                "port": {"anyOf": [{}], "x-kubernetes-int-or-string": True},
                "count": {"type": "integer", "format": "int32"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "steps": {"type": "array", "items": {"type": "object", "properties": {"a": {}}}},
                "free": {
                    "type": "object",
                    "properties": {},
                    "x-kubernetes-preserve-unknown-fields": True,
                },
            },
        },
    },
}


@pytest.fixture(scope="module")
def schemas():
    return definitions.schemas()


def test_a_folder_without_definitions_is_an_error_that_names_it(tmp_path, monkeypatch):
    monkeypatch.setattr(definitions, "FOLDER", str(tmp_path))

    with pytest.raises(FileNotFoundError, match=f"in '{tmp_path}'; expected the folder"):
        definitions.schemas()


@real
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_definitions_accept_every_object(path, schemas):
    ours = [each for each in documents(path) if each["apiVersion"].startswith(KSERVE)]

    assert ours
    for each in ours:
        schema = schemas[each["apiVersion"], each["kind"]]
        assert definitions.wrong(each, schema) == []


@real
@pytest.mark.parametrize(
    ("path", "inside", "change"),
    [
        (FILES[0], ["spec"], {"multiModels": True}),
        (FILES[0], ["spec"], {"containers": None}),
        (FILES[0], ["spec", "supportedModelFormats", 0], {"priority": "10"}),
        (FILES[1], ["spec", "predictor", "model"], {"storageUrl": "s3://a"}),
        (FILES[2], ["spec", "nodes", "root"], {"routerType": "Parallel"}),
    ],
)
def test_the_definitions_refuse_a_wrong_object(path, inside, change, schemas):
    first = next(each for each in documents(path) if each["apiVersion"].startswith(KSERVE))
    functools.reduce(operator.getitem, inside, first).update(change)

    assert definitions.wrong(first, schemas[first["apiVersion"], first["kind"]])


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"port": 8080, "count": 1, "labels": {"a": "b"}, "steps": [{"a": 1}]}, ""),
        ({"port": "http", "free": {"any": 1}}, ""),
        ({"port": 1.5}, "spec.port: 1.5 is not of type 'integer', 'string'"),
        ({"other": 1}, "spec: Additional properties are not allowed ('other' was unexpected)"),
        ({"labels": {"a": 1}}, "spec.labels.a: 1 is not of type 'string'"),
        ({"steps": [{}, {"b": 1}]}, "spec.steps.1: Additional properties"),
    ],
)
def test_a_schema_refuses_members_that_it_does_not_name(spec, text):
    document = {"apiVersion": "x/v1", "metadata": {"name": "a"}, "spec": spec}

    found = definitions.wrong(document, definitions.closed(SMALL, is_root=True))

    assert "".join(found).startswith(text) and bool(found) is bool(text)
