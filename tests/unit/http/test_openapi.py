"""/openapi.json describes exactly the routes of the router."""

import json
import re
from importlib import resources
from types import SimpleNamespace

import pytest

import core
import frontends.http
from core import dtypes
from core.control import OPERATIONS
from core.control.repository import RepositoryControl
from frontends.http.interceptors import restrictions
from frontends.http.openapi import description
from frontends.http.route_templates import templates
from frontends.http.router import TABLE, Router, openapi, table
from frontends.shared.v2 import MOST_DIMENSIONS, MOST_ENTRIES

ROUTES = table({"repository": RepositoryControl})
DOCUMENT = json.loads(description(ROUTES))
SCHEMAS = DOCUMENT["components"]["schemas"]
PARAMETERS = DOCUMENT["components"]["parameters"]
SAMPLES = {"file": "start.js", "model": "m", "version": "3", "region": "r", "repository": "q"}


def operations():
    for path, entry in DOCUMENT["paths"].items():
        for method, operation in entry.items():
            if method != "parameters":
                yield path, method, operation


def test_every_described_path_leads_to_a_route_and_every_route_is_described():
    router = Router(restrictions({}), ROUTES)
    found = [
        router.match(method.upper(), path.format(**SAMPLES), {}) for path, method, _ in operations()
    ]

    assert {match.route for match in found} == set(ROUTES)
    assert len(found) >= 45


def test_every_body_is_one_of_a_route():
    """openapi.json names it by the method and the shortest path of the route."""
    data = json.loads(resources.files(frontends.http).joinpath("openapi.json").read_bytes())

    assert set(data["bodies"]) <= {
        f"{method} {templates(route.path.pattern)[0]}"
        for route in TABLE
        for method in route.methods
    }


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.path.pattern)
def test_a_path_of_the_description_is_one_of_its_route(route):
    for path in templates(route.path.pattern):
        assert route.path.fullmatch(path.format(**SAMPLES)), path
        assert "(" not in path and "\\" not in path


def test_a_path_has_its_parameters_in_the_form_of_its_route():
    for path, entry in DOCUMENT["paths"].items():
        named = [each["$ref"].rpartition("/")[2] for each in entry.get("parameters", [])]
        assert named == re.findall(r"\{(\w+)\}", path)
        for name in named:
            pattern = PARAMETERS[name]["schema"]["pattern"]
            assert re.fullmatch(pattern, SAMPLES[name])
            assert not re.fullmatch(pattern, "1/2")


def test_operations_have_names_of_their_own_and_the_category_that_restricts_them():
    names = [operation["operationId"] for _, _, operation in operations()]
    by_path = {path: route.category for route in ROUTES for path in templates(route.path.pattern)}

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


def test_an_operation_says_what_it_does_and_what_its_category_is():
    load = DOCUMENT["paths"]["/v2/repository/models/{model}/load"]["post"]
    operation = OPERATIONS["repository.load"]

    assert (load["summary"], load["tags"]) == (operation.summary, [operation.category])
    assert all(each["summary"].endswith(".") for _, _, each in operations())


async def test_it_is_served_with_the_operations_of_the_server():
    server = SimpleNamespace(
        control=SimpleNamespace(areas={"repository": RepositoryControl}),
        shared=lambda factory: factory(None),
    )
    answer = await openapi(server, None)

    assert answer.body == description(ROUTES)
    assert DOCUMENT["info"]["version"] == core.__version__
    assert (await openapi(server, None)).body is answer.body
