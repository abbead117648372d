"""Options for container platforms, and the settings in their environment variables."""

import pytest

from core import options as core_options
from core import plugins
from core.errors import CoreError
from core.options import UsageError, check_server

SAGEMAKER = "--allow-sagemaker=true"
VERTEX = "--allow-vertex-ai=true"


def parse(arguments):
    return core_options.parse(arguments, plugins.flags())


def test_vertex_ai_sets_port_and_model_repository(monkeypatch):
    for name, value in [("MODE", "PREDICTION"), ("HTTP_PORT", "9090"), ("STORAGE_URI", "gs://b/m")]:
        monkeypatch.setenv(f"AIP_{name}", value)

    options = parse([])

    assert (options.value("allow_vertex_ai"), options.value("vertex_ai_port")) == (True, 9090)
    assert not options.value("allow_http")
    assert not options.value("allow_grpc")
    assert options.allow_metrics
    assert options.model_repository == ["gs://b/m"]


def test_flags_take_precedence_over_its_variables(monkeypatch):
    for name, value in [("MODE", "PREDICTION"), ("HTTP_PORT", "9090"), ("STORAGE_URI", "gs://b/m")]:
        monkeypatch.setenv(f"AIP_{name}", value)

    options = parse(
        ["--allow-http=true", "--allow-vertex-ai=0", "--vertex-ai-port=1", "--model-repository=/m"]
    )

    assert (
        options.value("allow_http"),
        options.value("allow_vertex_ai"),
        options.value("vertex_ai_port"),
    ) == (True, False, 1)
    assert options.model_repository == ["/m"]


@pytest.mark.parametrize("mode", ["", "TRAINING", "prediction"])
def test_elsewhere_the_protocols_of_v2_are_served(monkeypatch, mode):
    monkeypatch.setenv("AIP_MODE", mode)

    options = parse(["--model-repository=/m"])

    assert options.value("allow_http")
    assert options.value("allow_grpc")
    assert not options.value("allow_vertex_ai")


@pytest.mark.parametrize("text", ["many", "65536", "-1", "1e3", "9" * 5000, "000070000", "\u0667"])
def test_a_port_of_the_environment_that_is_none_ends_the_start(monkeypatch, text):
    monkeypatch.setenv("AIP_HTTP_PORT", text)

    with pytest.raises(UsageError, match=r"AIP_HTTP_PORT is '.*', expected the number of a port"):
        parse([])
    assert plugins.flags().options({}).value("vertex_ai_port") == 8080


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ([SAGEMAKER, "--http-port=8080"], "HTTP requests and SageMaker requests at the same"),
        ([VERTEX, "--grpc-port=8080"], "GRPC requests and Vertex AI requests at the same"),
        ([SAGEMAKER, VERTEX], "SageMaker requests and Vertex AI requests at the same"),
    ],
)
def test_two_protocols_share_no_port(flags, text):
    with pytest.raises(UsageError, match=text):
        parse(flags)


def test_others_listen_in_the_safe_range_of_sagemaker_only():
    safe = "--sagemaker-safe-port-range=8000-8001"
    with pytest.raises(
        UsageError, match=r"metrics requests at port 8002, allowed .* \[8000, 8001\]"
    ):
        parse([SAGEMAKER, safe])

    parse([safe])
    parse([SAGEMAKER, safe, "--metrics-port=8001", "--allow-grpc=0"])
    parse([SAGEMAKER, safe, "--metrics-address=127.0.0.1"])


@pytest.mark.parametrize("flag", [SAGEMAKER, VERTEX])
def test_a_secure_server_has_ports_without_tls_only_if_allowed_explicitly(tmp_path, flag):
    tokens = tmp_path / "tokens"
    tokens.touch()
    secure = ["--secure", f"--auth-tokens={tokens}", "--model-repository=/m", flag]

    with pytest.raises(CoreError, match="listen for other machines without TLS"):
        check_server(parse(secure))

    check_server(parse([*secure, "--secure-without-tls"]))


def test_client_certificates_do_not_identify_callers_behind_a_platform():
    mutual = ["--http-use-ssl-mutual=1", "--grpc-use-ssl-mutual=1", "--secure-without-tls"]
    secure = ["--secure", "--model-repository=/m", *mutual]

    with pytest.raises(CoreError, match="--secure needs to know who calls"):
        check_server(parse([*secure, SAGEMAKER]))
