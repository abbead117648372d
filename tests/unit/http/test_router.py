"""Paths, methods and restrictions."""

import json
import re

import pytest
from multidict import CIMultiDict

from frontends.http.interceptors import restrictions
from frontends.http.message import HttpResponse
from frontends.http.router import TABLE, Router
from frontends.shared.forms import RESTRICTED_CATEGORIES

OPEN = Router(restrictions({}), TABLE)
LOCKED = Router(
    restrictions({category: ("Key", "s\u00e9cret") for category in RESTRICTED_CATEGORIES}), TABLE
)

# One path of each row, in the order of the table.
PATHS = [
    ("POST", "/v2/models/m/infer", "inference"),
    ("GET", "/v2/health/live", "health"),
    ("GET", "/v2/health/ready", "health"),
    ("GET", "/v2", "metadata"),
    ("GET", "/v2/models/stats", "statistics"),
    ("GET", "/v2/models", "model-repository"),
    ("GET", "/v2/models/m", "metadata"),
    ("GET", "/v2/models/m/ready", "health"),
    ("GET", "/v2/models/m/config", "model-config"),
    ("GET", "/v2/models/m/stats", "statistics"),
    ("POST", "/v2/models/m/generate", "inference"),
    ("POST", "/v2/models/m/generate_stream", "inference"),
    ("POST", "/v2/repository/index", "model-repository"),
    ("POST", "/v2/repository/models/m/load", "model-repository"),
    ("POST", "/v2/repository/models/m/unload", "model-repository"),
    ("POST", "/v2/trace/setting", "trace"),
    ("GET", "/v2/trace/setting", "trace"),
    ("POST", "/v2/logging", "logging"),
    ("GET", "/v2/logging", "logging"),
    ("GET", "/v2/systemsharedmemory/status", "shared-memory"),
    ("GET", "/v2/cudasharedmemory/status", "shared-memory"),
    ("POST", "/v2/systemsharedmemory/register", "shared-memory"),
    ("POST", "/v2/cudasharedmemory/region/r/register", "shared-memory"),
    ("POST", "/v2/systemsharedmemory/unregister", "shared-memory"),
    ("POST", "/v2/cudasharedmemory/unregister", "shared-memory"),
    ("GET", "/openapi.json", "metadata"),
    ("GET", "/docs/openapi.json", "model-repository"),
]
OPEN_PATHS = [("GET", "/docs", "metadata"), ("GET", "/docs/start.js", "metadata")]
MORE_PATHS = [
    ("POST", "/v2/models/m/versions/1/infer", "inference"),
    ("GET", "/v2/models/m/versions/1", "metadata"),
    ("GET", "/v2/models/m/versions/1/ready", "health"),
    ("GET", "/v2/models/m/versions/1/config", "model-config"),
    ("GET", "/v2/models/m/versions/1/stats", "statistics"),
    ("POST", "/v2/models/m/versions/1/generate_stream", "inference"),
    ("POST", "/v2/repository/r/index", "model-repository"),
    ("POST", "/v2/repository/r/models/m/load", "model-repository"),
    ("POST", "/v2/models/m/trace/setting", "trace"),
    ("GET", "/v2/cudasharedmemory/region/r/status", "shared-memory"),
    ("POST", "/v2/systemsharedmemory/region/r/unregister", "shared-memory"),
    ("GET", "/v2/openapi.json", "metadata"),
]


def headers(**values):
    return CIMultiDict(values)


def status(found):
    return found.status if isinstance(found, HttpResponse) else 200


def test_every_row_of_the_table_is_tested_here():
    closed = [route for route in TABLE if not route.is_open]
    assert len(PATHS) == len(closed)
    for (_, path, _), route in zip(PATHS, closed, strict=True):
        assert OPEN.match("GET" if "GET" in route.methods else "POST", path, {}).route is route


@pytest.mark.parametrize("method,path,category", PATHS + MORE_PATHS)
def test_a_path_has_its_category(method, path, category):
    assert OPEN.match(method, path, headers()).route.category == category


@pytest.mark.parametrize("method,path,category", PATHS + MORE_PATHS)
def test_every_path_can_be_restricted(method, path, category):
    one = Router(restrictions({category: ("key", "secret")}), TABLE)

    for found in (headers(), headers(key=""), headers(key="secrets"), headers(other="secret")):
        for wrong_or_right in (method, "PUT"):
            refused = one.match(wrong_or_right, path, found)
            assert refused.status == 403
            assert json.loads(refused.body) == {
                "error": "This API is restricted, expecting header 'key'"
            }
    assert status(one.match(method, path, headers(KEY="secret"))) == 200


@pytest.mark.parametrize("method,path,category", OPEN_PATHS)
def test_a_file_of_the_page_cannot_be_restricted(method, path, category):
    one = Router(restrictions({category: ("key", "secret")}), TABLE)

    assert status(one.match(method, path, headers())) == 200
    assert one.requirement(method, path, headers()) is None
    assert status(one.match("PUT", path, headers())) == 405


def test_other_categories_stay_open():
    one = Router(restrictions({"model-repository": ("key", "secret")}), TABLE)
    for method, path, category in PATHS + MORE_PATHS:
        assert (status(one.match(method, path, headers())) == 403) == (
            category == "model-repository"
        )


def test_a_secret_may_be_any_text():
    assert status(LOCKED.match("GET", "/v2", headers(key="s\u00e9cret"))) == 200
    assert status(LOCKED.match("GET", "/v2", headers(key="secret"))) == 403
    assert status(LOCKED.match("GET", "/v2", headers(key="\udcff"))) == 403


@pytest.mark.parametrize("method,path,_", PATHS + MORE_PATHS)
@pytest.mark.parametrize("wrong", ["PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "get"])
def test_another_method_is_refused(method, path, _, wrong):
    refused = OPEN.match(wrong, path, headers())
    assert refused.status == 405
    assert refused.body == b'{"error":"Method Not Allowed"}'


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/v1",
        "/v2/",
        "//v2",
        "/v2/nothing",
        "/v2/models/",
        "/docs/",
        "/docs/a/b",
        "/v2/health",
        "/v2/health/nothing",
        "/v2/models/m/",
        "/v2/models/m/nothing",
        "/v2/models/m/versions",
        "/v2/models/m/versions/one",
        "/v2/models/m/versions/-1",
        "/v2/models/m/versions/\u0661",
        "/v2/models/m/versions/1/",
        "/v2/models/m/versions/1/trace/setting",
        "/v2/models/a/b/infer",
        "/v2/repository/a/b/index",
        "/v2/repository/models//load",
        "/v2/systemsharedmemory/region//register",
        "/V2",
        "/v2\n",
    ],
)
def test_another_path_is_not_found(path):
    for method in ("GET", "POST"):
        refused = OPEN.match(method, path, headers())
        assert refused.status == 404
        assert refused.body == b'{"error":"Not Found"}'


@pytest.mark.parametrize(
    "name", ["m", "..", "a%20b", "%2e%2e", "infer", "versions", "\u2603", "a;b", "\udcff"]
)
def test_a_models_name_is_taken_as_it_came(name):
    found = OPEN.match("POST", f"/v2/models/{name}/infer", headers())
    assert found.captures["model"] == name


def test_names_of_parts_are_those_that_services_ask_for():
    for route in TABLE:
        assert set(re.findall(r"\?P<(\w+)>", route.path.pattern)) <= {
            "model",
            "version",
            "repository",
            "kind",
            "region",
            "file",
        }
