"""/openapi.json: made of the router's table, and true of all of it."""

import json
import re

import pytest

import core
from frontends.http.openapi.document import describe, templates
from frontends.http.openapi.operations import OPERATIONS
from frontends.http.openapi.schemas import SCHEMAS
from frontends.http.router import TABLE, openapi

DOCUMENT = describe(TABLE)
SAMPLES = {"model": "m", "version": "3", "region": "r", "repository": "q"}


def operations():
    for path, entry in DOCUMENT["paths"].items():
        for method, operation in entry.items():
            if method != "parameters":
                yield path, method, operation


def test_every_service_of_the_router_is_described():
    assert {route.service for route in TABLE} == {*OPERATIONS, openapi}
    for route in TABLE:
        if route.service is not openapi:
            assert set(OPERATIONS[route.service]) == set(route.methods)


def test_every_route_and_nothing_else_is_in_the_description():
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


def test_a_path_has_its_parameters():
    for path, entry in DOCUMENT["paths"].items():
        named = [each["name"] for each in entry.get("parameters", [])]
        assert named == re.findall(r"\{(\w+)\}", path)


def test_operations_have_names_of_their_own_and_the_category_that_restricts_them():
    names = [operation["operationId"] for _, _, operation in operations()]
    by_path = {path: route.category for route in TABLE for path in templates(route.path.pattern)}

    assert len(names) == len(set(names))
    assert all(operation["tags"] == [by_path[path]] for path, _, operation in operations())


def test_every_schema_that_is_named_is_there_and_is_used():
    named = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(DOCUMENT)))

    assert named <= set(SCHEMAS)
    assert set(SCHEMAS) <= named


def test_the_binary_extension_is_described():
    infer = DOCUMENT["paths"]["/v2/models/{model}/infer"]["post"]

    assert "application/octet-stream" in infer["requestBody"]["content"]
    assert infer["parameters"][0]["name"] == "Inference-Header-Content-Length"
    assert "Inference-Header-Content-Length" in infer["responses"]["200"]["headers"]


async def test_it_is_served_as_it_is():
    answer = await openapi(None, None)

    assert json.loads(answer.body) == json.loads(json.dumps(DOCUMENT))
    assert DOCUMENT["info"]["version"] == core.__version__
    assert (await openapi(None, None)).body is answer.body
