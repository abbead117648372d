"""The operations for operators: jobs of all callers, their sums, and cancelling."""

import json
import re

import pytest

from core.plugins.commands import run_command

from .conftest import LINES, batch, request


@pytest.fixture
def be(tmp_path, capsys, serve):
    """Return a server with four callers, and be(name): its client has the token of that caller."""
    file, made = tmp_path / "tokens", {}
    for name, role in (("ann", "infer"), ("bob", "infer"), ("eve", "read"), ("ops", "manage")):
        assert run_command("token", [name, "--role", role, "--file", str(file)]) == 0
        made[name] = re.search(r"\S{20,}", capsys.readouterr().out)[0]
    client = serve(auth_tokens=str(file), jobs_running=1)
    client.models.opened.clear()

    def be(name):
        client.headers = {"Authorization": f"Bearer {made[name]}"}
        return client

    return be


def control(client, operation, **arguments):
    body = json.dumps(arguments).encode()
    return client.call(
        "POST", f"/control/jobs.{operation}", body, {"Content-Type": "application/json"}
    )


def shown(client, **arguments):
    found = control(client, "show", **arguments)
    assert found.status == 200, found.body
    return found.json["result"]


def ids(client, **arguments):
    return [job["id"] for job in shown(client, **arguments)["jobs"]]


def test_an_operator_sees_and_cancels_the_jobs_of_all_callers(be):
    runs = be("ann").submit("gate", batch(1, 2), LINES)["id"]
    waits = be("bob").submit("double", request(1))["id"]
    be("ann").until(runs, lambda job: job["state"] == "running")

    found = shown(be("eve"))
    assert [(job["id"], job["caller"], job["state"]) for job in found["jobs"]] == [
        (waits, "caller 'bob'", "queued"),
        (runs, "caller 'ann'", "running"),
    ]
    assert found["after"] is None

    assert control(be("eve"), "cancel", job=runs).status == 403
    cancelled = control(be("ops"), "cancel", job=runs).json["result"]
    assert (cancelled["state"], cancelled["caller"]) == ("cancelled", "caller 'ann'")
    assert be("ann").ended(runs)["state"] == "cancelled"
    assert be("bob").ended(waits)["state"] == "done"
    assert control(be("ops"), "cancel", job=waits).json["result"]["state"] == "done"

    sums = control(be("eve"), "callers").json["result"]
    assert [(each["caller"], each["jobs"]) for each in sums] == [
        ("caller 'ann'", {"cancelled": 1}),
        ("caller 'bob'", {"done": 1}),
    ]
    assert sums[1]["bytes"] == 0 and sums[1]["result_bytes"] > 0


def test_the_list_has_filters_and_pages(be):
    be("ann").models.opened.set()
    first = [be("ann").submit("double", request(n))["id"] for n in range(3)]
    other = be("bob").submit("gate", request(1))["id"]
    for name, id in [("ann", first[2]), ("bob", other)]:
        be(name).ended(id)
    client = be("ops")

    assert ids(client, caller="caller 'bob'") == ids(client, model="gate") == [other]
    assert ids(client, state="done", caller="caller 'ann'") == first[::-1]
    assert ids(client, state="running") == ids(client, caller="") == []
    page = shown(client, limit=2)
    assert ([job["id"] for job in page["jobs"]], page["after"]) == ([other, first[2]], first[2])
    assert ids(client, after=page["after"]) == [first[1], first[0]]


@pytest.mark.parametrize(
    ("arguments", "status", "error"),
    [
        (
            {"state": "gone"},
            400,
            "state is 'gone'; expected one of queued, running, done, failed, cancelled",
        ),
        ({"limit": 0}, 400, "limit is 0; expected a whole number from 1 to 1000"),
        ({"after": "x"}, 404, "there is no job 'x'"),
    ],
)
def test_wrong_arguments_are_named(client, arguments, status, error):
    found = control(client, "show", **arguments)

    assert found.status == status and error in found.error


def test_without_callers_all_jobs_are_of_one(client):
    id = client.submit("double", request(1))["id"]
    client.ended(id)

    assert ids(client, caller="", limit=1) == [id]
    assert control(client, "cancel", job="x").status == 404
