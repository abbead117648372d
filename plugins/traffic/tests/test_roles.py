"""A real server with tokens: which callers may read and change the traffic of a model."""

import hashlib
import json
import urllib.error
import urllib.request
from pathlib import Path

import grpc
import pytest
from conformance.launcher import Launcher
from google.protobuf.wrappers_pb2 import StringValue

MODELS = Path(__file__).parents[3] / "examples" / "traffic" / "models"
ROLES = {"client": "infer", "monitor": "read", "deploy": "manage"}
TRAFFIC = {"weights": {"1": 1, "2": 1}}
CHANGES = [
    ("/v2/models/price/traffic", TRAFFIC),
    ("/control/traffic.set", {"model": "price", "traffic": TRAFFIC}),
    ("/control/traffic.reset", {"model": "price"}),
]
READS = ["/v2/models/price/traffic", "/control/traffic.get?model=price"]


@pytest.fixture(scope="module")
def server(pytestconfig, tmp_path_factory):
    pytest.importorskip("backend_python")
    tokens = tmp_path_factory.mktemp("tokens") / "tokens.txt"
    lines = [
        f"{name} {role} sha256:{hashlib.sha256(f'core_{name}'.encode()).hexdigest()}\n"
        for name, role in ROLES.items()
    ]
    tokens.write_text("".join(lines))
    tokens.chmod(0o600)
    launcher = Launcher(pytestconfig)
    launcher.kind = "core"
    yield launcher.start(["price"], f"--auth-tokens={tokens}", source=MODELS)
    launcher.stop_all(wait=True)


def status(server, path, value=None, caller=""):
    """GET a path, or POST a value; return the status."""
    body = None if value is None else json.dumps(value).encode()
    headers = {"Authorization": f"Bearer core_{caller}"} if caller else {}
    request = urllib.request.Request(f"http://{server.http_address}{path}", body, headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def test_only_the_role_manage_changes_traffic(server):
    callers = {"": 401, "stranger": 401, "client": 403, "monitor": 403}
    for path, value in CHANGES:
        assert {each: status(server, path, value, each) for each in callers} == callers, path
        assert status(server, path, value, "deploy") == 200, path
    for path in READS:
        found = {each: status(server, path, caller=each) for each in ("", *ROLES)}
        assert found == {"": 401, "client": 403, "monitor": 200, "deploy": 200}, path


def test_the_roles_are_the_same_over_grpc(server):
    value = StringValue(value=json.dumps({"model": "price", "traffic": TRAFFIC}))
    found = {}
    with grpc.insecure_channel(server.grpc_address) as channel:
        do = channel.unary_unary(
            "/core.control.traffic/set",
            StringValue.SerializeToString,
            StringValue.FromString,
        )
        for caller in ("", *ROLES):
            metadata = [("authorization", f"Bearer core_{caller}")] if caller else []
            try:
                do(value, metadata=metadata)
                found[caller] = "OK"
            except grpc.RpcError as error:
                found[caller] = error.code().name

    denied = "PERMISSION_DENIED"
    assert found == {"": "UNAUTHENTICATED", "client": denied, "monitor": denied, "deploy": "OK"}
