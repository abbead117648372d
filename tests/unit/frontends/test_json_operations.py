"""Control operations as JSON: which ones are offered, and which arguments they take."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from core.control import OPERATIONS, Area, Changed, Operation, change, here, question
from core.control.health import HealthControl
from core.control.repository import RepositoryControl
from core.control.settings import SettingsControl
from core.errors import CoreError, Kind
from frontends.http.router import TABLE, table
from frontends.shared.json_operations import call, json_form, of_query, offered
from frontends.shared.memory import MemoryControl

CORE = {
    each.name: each for each in (HealthControl, RepositoryControl, SettingsControl, MemoryControl)
}


@pytest.fixture
def shelf():
    """An area as a plugin writes one; it is in the table for the time of a test."""

    class ShelfControl(Area, name="shelf"):
        def __init__(self):
            self.books = {}

        @change("model-repository", subject="book {title}", otherwise="the others keep theirs")
        async def put(self, title: str, pages: int = 1, price: float | None = None) -> Changed:
            """Put a book on the shelf; return its pages."""
            self.books[title] = (pages, price)
            return Changed(pages)

        @question("statistics", lambda results, arguments: results.all()[0])
        async def find(self, titles: list[str], words: Mapping[str, int]) -> dict[str, bool]:
            """Return which titles are there."""
            return {title: title in self.books for title in titles}

        @here("health", encode=lambda path: str(path))
        def place(self) -> Path:
            """Return where the shelf is."""
            return Path("/library")

        @here("health")
        def owner(self) -> Path:
            """Return what JSON cannot hold."""

        @here("health")
        def weigh(self, raw: bytes) -> int:
            """Take what JSON cannot hold."""

        @here("health")
        def unknown(self, raw) -> int:
            """Take what has no type."""

        @change("model-repository", otherwise="the others keep theirs", internal=True)
        async def burn(self) -> None:
            """Is for the server only."""

    yield ShelfControl()
    for name in [name for name in OPERATIONS if name.startswith("shelf.")]:
        del OPERATIONS[name]


def names(found):
    return [each.name for each in found]


def test_core_offers_these_operations_beside_those_of_the_protocol_and_no_others():
    """Each one that is added here can be reached by clients: its category decides by which."""
    served = {route.operation for route in TABLE}

    assert names(offered(CORE.values(), served)) == ["repository.poll"]
    assert [route.operation for route in table(CORE) if route.is_generic] == ["repository.poll"]


def test_what_reaches_past_an_option_is_internal():
    """Any folder of the machine, descriptors of other processes, metrics without their port."""
    for name in ("repository.join", "memory.lend_from", "memory.give_back", "health.metrics"):
        assert OPERATIONS[name].internal


def test_operations_that_json_can_hold_are_offered(shelf):
    assert names(offered([shelf], ())) == ["shelf.put", "shelf.find", "shelf.place"]
    assert names(offered([shelf], {"shelf.find"})) == ["shelf.put", "shelf.place"]


def test_types_become_schemas(shelf):
    put, find = json_form(OPERATIONS["shelf.put"]), json_form(OPERATIONS["shelf.find"])

    assert put.arguments == {
        "title": {"type": "string"},
        "pages": {"type": "integer"},
        "price": {"anyOf": [{"type": "number"}, {"type": "null"}]},
    }
    assert put.required == ["title"]
    assert find.arguments["titles"] == {"type": "array", "items": {"type": "string"}}
    assert find.result == {"type": "object", "additionalProperties": {"type": "boolean"}}


@pytest.mark.parametrize(
    "annotation", [set[str], tuple[int, int], dict[int, str], bytes, object, Sequence[bytes]]
)
def test_other_types_have_no_schema(annotation):
    async def body(self, value: annotation) -> None: ...

    body.__annotations__["value"] = annotation
    assert json_form(Operation("a.b", "health", False, "", body)) is None


async def ask(shelf, name, arguments):
    return await call({"shelf": shelf}, OPERATIONS[name], arguments)


async def test_a_call_returns_the_result(shelf):
    assert await ask(shelf, "shelf.put", {"title": "Emma", "pages": 9}) == b'{"result":9}'
    assert shelf.books == {"Emma": (9, None)}
    assert await ask(shelf, "shelf.find", {"titles": ["Emma"], "words": {}}) == (
        b'{"result":{"Emma":true}}'
    )
    assert await ask(shelf, "shelf.place", {}) == b'{"result":"/library"}'


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "takes its arguments as a JSON object"),
        (None, "takes its arguments as a JSON object"),
        ({}, "needs the argument 'title'"),
        ({"title": "a", "author": "b"}, "has no argument 'author'"),
        ({"title": "a", "self": 1}, "has no argument 'self'"),
        ({"title": 1}, "needs string as the argument 'title', not integer"),
        ({"title": "a", "pages": True}, "needs integer as the argument 'pages', not boolean"),
        ({"title": "a", "pages": 1.5}, "needs integer as the argument 'pages', not number"),
        ({"title": "a", "price": "1"}, "needs number or null as the argument 'price', not string"),
    ],
)
async def test_wrong_arguments_are_named(shelf, arguments, text):
    with pytest.raises(CoreError) as error:
        await ask(shelf, "shelf.put", arguments)

    assert error.value.kind is Kind.INVALID
    assert error.value.message == (
        f"control operation 'shelf.put' {text}; its arguments: title (string), pages (integer, optional), "
        "price (number or null, optional)"
    )
    assert shelf.books == {}


@pytest.mark.parametrize(
    "arguments",
    [
        {"titles": "Emma", "words": {}},
        {"titles": [1], "words": {}},
        {"titles": [], "words": {"a": "b"}},
        {"titles": [], "words": []},
    ],
)
async def test_what_lists_and_objects_hold_is_checked(shelf, arguments):
    with pytest.raises(CoreError, match=r"shelf\.find"):
        await ask(shelf, "shelf.find", arguments)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", {}),
        ("title=a%20b&pages=2", {"title": "a b", "pages": 2}),
        ("title=&price=null", {"title": "", "price": None}),
        ("title=5&price=1.5", {"title": "5", "price": 1.5}),
        ("other=1", {"other": "1"}),
    ],
)
def test_a_query_has_text_or_json(shelf, query, found):
    assert of_query(OPERATIONS["shelf.put"], query) == found


@pytest.mark.parametrize("query", ["pages=two", "title=a&title=b"])
def test_a_wrong_query_is_refused(shelf, query):
    with pytest.raises(CoreError, match=r"control operation 'shelf\.put'"):
        of_query(OPERATIONS["shelf.put"], query)


def test_an_argument_of_any_type_takes_any_json():
    async def body(self, value: Any) -> Any: ...

    body.__annotations__.update({"value": Any, "return": Any})
    assert json_form(Operation("a.c", "health", False, "", body)).arguments == {"value": {}}
