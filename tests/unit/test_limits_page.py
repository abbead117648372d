"""docs/operate/limits.md has the limits that are in effect."""

import re
from pathlib import Path

import pytest

from core import plugins
from core.repository.names import LONGEST_NAME
from core.telemetry import log
from frontends.grpc import status
from frontends.grpc.protocol import decode as grpc_decode
from frontends.grpc.protocol import parse as grpc_parse
from frontends.grpc.services import stream
from frontends.http import connections, errors, request_timeouts, websocket
from frontends.http.codec import json_tensor, limits
from frontends.shared import access_log, v2

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operate" / "limits.md").read_text()
DEFAULTS = {flag.name: flag.default for flag in plugins.flags().rows}


def row(what):
    """The cells of a row of the table."""
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {what}")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def header_constant(path, name):
    """A number in a C++ header."""
    found = re.search(rf"{name} = ([\d* ]+);", (ROOT / path).read_text())
    return eval(found[1])


@pytest.mark.parametrize(("flag", "number"), re.findall(r"`--([a-z0-9-]+)` (\d+)", PAGE))
def test_a_default_is_that_of_its_flag(flag, number):
    assert DEFAULTS[flag] == int(number)


def test_every_flag_that_is_named_is_there():
    named = set(re.findall(r"--([a-z][a-z0-9-]+)", PAGE))

    assert named <= set(DEFAULTS)


def test_every_flag_that_bounds_clients_is_on_the_page():
    bounds = {
        name
        for name in DEFAULTS
        if re.match(r"(http|grpc)-max-|(http|grpc)-\w+-timeout-secs|(request|unpaid)-memory-", name)
    }

    # Triton's pool of responses is no bound of a client, and pings are of the transport's options.
    named = bounds - {"grpc-max-response-pool-size", "grpc-max-connection-age"}
    assert [name for name in named if f"--{name}" not in PAGE and "age-grace" not in name] == []


@pytest.mark.parametrize(
    ("what", "column", "number"),
    [
        ("chunks of a body", 1, limits.MOST_CHUNKS),
        ("nesting of `data`", 1, json_tensor._MOST_DEPTH),
        ("inputs, outputs, parameters", 1, v2.MOST_ENTRIES),
        ("inputs, outputs, parameters", 2, grpc_decode.MOST_ENTRIES),
        ("messages, map entries and texts", 2, grpc_decode.MOST_PARTS),
        (
            "messages, map entries and texts",
            2,
            header_constant("frontends/grpc/native/wire.hpp", "kMostParts"),
        ),
        ("elements of typed contents", 2, grpc_decode.MOST_ELEMENTS),
        ("dimensions of a shape", 1, v2.MOST_DIMENSIONS),
        ("dimensions of a shape", 2, grpc_parse.MOST_DIMENSIONS),
        ("name of a model to load", 1, LONGEST_NAME),
        ("error text", 1, errors.LONGEST_TEXT),
        ("error text", 2, status.LONGEST_DETAILS),
        ("concurrent requests of a connection", 1, websocket.MOST_REQUESTS),
        ("stalled body", 0, request_timeouts.PROGRESS // 1024),
        ("idle connection", 1, int(connections.KEEP_ALIVE_S)),
        ("unread responses", 2, stream.MOST_UNSENT_BYTES >> 20),
        ("log message", 1, log.LONGEST_MESSAGE),
        ("name in the access log", 1, access_log.LONGEST_TEXT),
        (
            "header line",
            2,
            header_constant("frontends/grpc/native/stream.hpp", "MOST_HEADER_BYTES"),
        ),
        (
            "dimensions of a shape",
            1,
            header_constant("frontends/http/native/infer_request.hpp", "kMostDimensions"),
        ),
        (
            "nesting of `data`",
            1,
            header_constant("frontends/http/native/json_cursor.hpp", "kMostDepth"),
        ),
    ],
)
def test_a_number_is_the_one_in_the_code(what, column, number):
    assert re.search(rf"\b{number}\b", row(what)[column])


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([\w/]*tests/[\w/]+\.py)`", PAGE))))
def test_the_test_of_a_bound_is_there(name):
    assert (ROOT / name).is_file()


def test_every_bound_names_its_test():
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "| limit |" not in line]

    assert [line for line in rows if not re.search(r"`[\w/]*tests/", line)] == []
