"""The start of a server: the models that it loads, and those that fail."""

import pytest
from conformance.catalog import FAIL_SYNTAX
from conformance.protocol import grpc_input, texts, wait_until
from conformance.repository_control import EXPLICIT, double, index
from conformance.server import StartError


def test_server_exits_when_a_model_fails_at_the_start(launch_once):
    with pytest.raises(StartError) as error:
        launch_once(["plain", "fail_init"])
    assert error.value.returncode not in (0, None)


def test_server_goes_on_when_it_is_told_not_to_exit_on_error(launch_once):
    server = launch_once(["plain", "fail_init"], "--exit-on-error=false", wait="live")
    assert wait_until(lambda: server.ready("plain"))
    assert not server.ready("fail_init")
    assert server.get("/v2/health/ready").status == 400
    assert double(server) == [6]


def test_server_is_ready_without_strict_readiness_when_a_model_failed(launch_once):
    server = launch_once(
        ["plain", "fail_init"], "--exit-on-error=false", "--strict-readiness=false"
    )
    assert not server.ready("fail_init")


def test_all_models_can_be_loaded_at_the_start_of_explicit_mode(launch_once):
    server = launch_once(["plain", "add_sub"], EXPLICIT, "--load-model=*")
    assert server.ready("plain") and server.ready("add_sub")


def test_named_model_that_is_absent_ends_the_start(launch_once):
    with pytest.raises(StartError):
        launch_once(["plain"], EXPLICIT, "--load-model=absent")


def test_empty_repository_is_allowed(launch_once):
    server = launch_once([])
    assert index(server) == []


def test_failing_model_answers_nothing_and_others_do(launch_once):
    server = launch_once(["faulty", FAIL_SYNTAX], "--exit-on-error=false", wait="live")
    assert wait_until(lambda: server.ready("faulty"))
    result = server.grpc_client().infer("faulty", [grpc_input("MODE", texts("ok"), "BYTES")])
    assert result.as_numpy("OUTPUT0").tolist() == [b"ok"]
