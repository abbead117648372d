"""Who may see which jobs: callers with tokens, restricted categories."""

import re

import pytest

from core.plugins.commands import run_command

from .conftest import request


@pytest.fixture
def tokens(tmp_path, capsys):
    """Return (file, name → token) of three callers."""
    file, made = tmp_path / "tokens", {}
    for name, role in (("ann", "infer"), ("bob", "infer"), ("eve", "read")):
        assert run_command("token", [name, "--role", role, "--file", str(file)]) == 0
        made[name] = re.search(r"\S{20,}", capsys.readouterr().out)[0]
    return file, made


def test_callers_see_their_own_jobs(serve, tokens):
    file, made = tokens
    client = serve(auth_tokens=str(file), jobs_per_caller=1)
    client.models.opened.clear()

    def be(name):
        client.headers = {"Authorization": f"Bearer {made[name]}"} if name else {}

    be("ann")
    id = client.submit("gate", request(1))["id"]
    limited = client.call("POST", "/v2/models/double/jobs", request(1))
    assert limited.status == 429
    assert limited.error.startswith("caller 'ann': 1 jobs wait or run, the limit is 1")
    assert int(limited.headers["Retry-After"]) > 0

    be("bob")
    assert client.get("/v2/jobs").json["jobs"] == []
    for method, path in (
        ("GET", ""),
        ("GET", "/results"),
        ("POST", "/cancel"),
        ("DELETE", ""),
    ):
        answer = client.call(method, f"/v2/jobs/{id}{path}")
        assert answer.status == 404, (method, path)
        assert f"there is no job '{id}'" in answer.error
    own = client.submit("double", request(1))["id"]
    client.ended(own)
    assert [job["id"] for job in client.get("/v2/jobs").json["jobs"]] == [own]

    be("eve")
    assert client.call("POST", "/v2/models/double/jobs", request(1)).status == 403
    assert client.get("/v2/jobs").status == 403
    be("")
    assert client.get(f"/v2/jobs/{id}").status == 401

    be("ann")
    assert client.state(id) == "running"
    client.models.opened.set()
    assert client.ended(id)["state"] == "done"


def test_jobs_are_a_category_of_restrictions(serve):
    client = serve(http_restricted_api={"jobs": ("job-key", "s"), "inference": ("key", "t")})
    assert client.get("/v2/jobs").status == 403
    both = {"job-key": "s", "key": "t"}
    answer = client.call("POST", "/v2/models/double/jobs", request(1), {"job-key": "s"})
    assert (answer.status, "expecting header 'key'" in answer.error) == (403, True)
    id = client.submit("double", request(1), both)["id"]
    assert client.call("GET", f"/v2/jobs/{id}", headers={"job-key": "s"}).status == 200
