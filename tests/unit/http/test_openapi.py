"""/openapi.json describes exactly the routes of the router."""

import json
import re

import pytest
from route_templates import form, templates

import core
from core import dtypes
from core.v2 import MOST_DIMENSIONS, MOST_ENTRIES
from frontends.http.openapi import description
from frontends.http.router import TABLE, openapi

DOCUMENT = json.loads(description())
SCHEMAS = DOCUMENT["components"]["schemas"]
PARAMETERS = DOCUMENT["components"]["parameters"]
SAMPLES = {"model": "m", "version": "3", "region": "r", "repository": "q"}


def operations():
    for path, entry in DOCUMENT["paths"].items():
        for method, operation in entry.items():
            if method != "parameters":
                yield path, method, operation


def test_every_route_is_in_the_description_and_no_other():
    found = {(path, method.upper()) for path, method, _ in operations()}
    asked = {
        (path, method)
        for route in TABLE
        for path in templates(route.path.pattern)
        for method in route.methods
    }

    assert found == asked


@pytest.mark.parametrize("route", TABLE, ids=lambda route: route.path.pattern)
def test_a_path_of_the_description_is_one_of_its_route(route):
    for path in templates(route.path.pattern):
        assert route.path.fullmatch(path.format(**SAMPLES)), path
        assert "(" not in path and "\\" not in path


def test_a_path_has_its_parameters_in_the_form_of_its_route():
    patterns = {
        path: route.path.pattern for route in TABLE for path in templates(route.path.pattern)
    }

    for path, entry in DOCUMENT["paths"].items():
        named = [each["$ref"].rpartition("/")[2] for each in entry.get("parameters", [])]
        assert named == re.findall(r"\{(\w+)\}", path)
        for name in named:
            schema = PARAMETERS[name]["schema"]
            assert schema["pattern"] == f"^{form(patterns[path], name)}$"


def test_operations_have_names_of_their_own_and_the_category_that_restricts_them():
    names = [operation["operationId"] for _, _, operation in operations()]
    by_path = {path: route.category for route in TABLE for path in templates(route.path.pattern)}

    assert len(names) == len(set(names))
    assert all(operation["tags"] == [by_path[path]] for path, _, operation in operations())


@pytest.mark.parametrize("kind", sorted(DOCUMENT["components"]))
def test_every_component_that_is_named_is_there_and_is_used(kind):
    named = set(re.findall(rf"#/components/{kind}/(\w+)", json.dumps(DOCUMENT)))

    assert named == set(DOCUMENT["components"][kind])


def test_bounds_and_datatypes_are_those_of_the_code():
    properties = SCHEMAS["InferInput"]["properties"]

    assert properties["datatype"]["enum"] == sorted(dtypes.BY_NAME)
    assert properties["shape"]["maxItems"] == MOST_DIMENSIONS
    assert SCHEMAS["InferRequest"]["properties"]["inputs"]["maxItems"] == MOST_ENTRIES
    assert SCHEMAS["Parameters"]["maxProperties"] == MOST_ENTRIES


def test_the_binary_extension_is_described():
    infer = DOCUMENT["paths"]["/v2/models/{model}/infer"]["post"]

    assert "application/octet-stream" in infer["requestBody"]["content"]
    assert PARAMETERS["binary_header"]["name"] == "Inference-Header-Content-Length"
    assert "Inference-Header-Content-Length" in infer["responses"]["200"]["headers"]


async def test_it_is_served_unchanged():
    answer = await openapi(None, None)

    assert answer.body == description()
    assert DOCUMENT["info"]["version"] == core.__version__
    assert (await openapi(None, None)).body is answer.body
