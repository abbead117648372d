"""Health, server metadata and model metadata."""

import pytest
import tritonclient.grpc.service_pb2 as pb
import tritonclient.grpc.service_pb2_grpc as pb_grpc
from conformance.protocol import refused
from tritonclient.utils import InferenceServerException

EXTENSIONS = [
    "classification",
    "sequence",
    "model_repository",
    "model_repository(unload_dependents)",
    "schedule_policy",
    "model_configuration",
    "system_shared_memory",
    "binary_tensor_data",
    "parameters",
    "statistics",
    "trace",
    "logging",
]


@pytest.fixture(scope="module")
def stub(basic):
    import grpc as grpc_library

    with grpc_library.insecure_channel(basic.grpc_address) as channel:
        yield pb_grpc.GRPCInferenceServiceStub(channel)


@pytest.mark.parametrize("which", ["live", "ready"])
def test_server_health_answers_200_with_an_empty_body(basic, which):
    response = basic.get(f"/v2/health/{which}")
    assert (response.status, response.body) == (200, b"")


@pytest.mark.parametrize("path", ["/v2/models/plain/ready", "/v2/models/plain/versions/1/ready"])
def test_ready_model_answers_200_with_an_empty_body(basic, path):
    response = basic.get(path)
    assert (response.status, response.body) == (200, b"")


@pytest.mark.parametrize("path", ["/v2/models/absent/ready", "/v2/models/plain/versions/9/ready"])
def test_model_that_is_not_ready_answers_400(basic, path):
    assert basic.get(path).status == 400


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1",
        "/v2/",
        "/v2/nothing",
        "/v2/health/nothing",
        "/v2/models/plain/nothing",
        "/v2/models/plain/versions/one",
    ],
)
def test_unknown_path_answers_404(basic, path):
    assert basic.get(path).status == 404


@pytest.mark.parametrize(
    "method,path",
    [
        ("POST", "/v2/health/live"),
        ("POST", "/v2"),
        ("POST", "/v2/models/plain"),
        ("POST", "/v2/models/plain/config"),
        ("POST", "/v2/models/plain/ready"),
        ("POST", "/v2/models/plain/stats"),
        ("GET", "/v2/models/plain/infer"),
        ("PUT", "/v2/models/plain/infer"),
        ("GET", "/v2/repository/index"),
        ("DELETE", "/v2"),
    ],
)
def test_wrong_method_answers_405(basic, method, path):
    assert basic.request(method, path).status == 405


def test_query_string_does_not_change_the_route(basic):
    assert basic.get("/v2/models/plain?x=1").json["name"] == "plain"


def test_server_metadata_names_the_server_its_version_and_extensions(basic):
    metadata = basic.get("/v2").json
    assert set(metadata) == {"name", "version", "extensions"}
    assert metadata["name"] == "triton"
    assert metadata["version"].count(".") == 2
    assert set(EXTENSIONS) <= set(metadata["extensions"])


def test_server_metadata_is_the_same_over_grpc(basic, grpc):
    over_http = basic.get("/v2").json
    over_grpc = grpc.get_server_metadata()
    assert over_grpc.name == over_http["name"]
    assert over_grpc.version == over_http["version"]
    assert list(over_grpc.extensions) == over_http["extensions"]


def test_json_answers_say_so_in_their_content_type(basic):
    for path in ("/v2", "/v2/models/plain", "/v2/models/plain/config", "/v2/models/stats"):
        assert basic.get(path).headers["Content-Type"] == "application/json"


def test_model_metadata_lists_inputs_outputs_and_versions(basic):
    assert basic.get("/v2/models/add_sub_int32").json == {
        "name": "add_sub_int32",
        "versions": ["1"],
        "platform": "python",
        "inputs": [
            {"name": "INPUT0", "datatype": "INT32", "shape": [-1]},
            {"name": "INPUT1", "datatype": "INT32", "shape": [-1]},
        ],
        "outputs": [
            {"name": "OUTPUT0", "datatype": "INT32", "shape": [-1]},
            {"name": "OUTPUT1", "datatype": "INT32", "shape": [-1]},
        ],
    }


def test_model_metadata_puts_the_batch_dimension_first(basic):
    metadata = basic.get("/v2/models/add_sub").json
    assert [entry["shape"] for entry in metadata["inputs"]] == [[-1, 4], [-1, 4]]
    assert [entry["shape"] for entry in metadata["outputs"]] == [[-1, 4], [-1, 4]]


def test_model_metadata_of_fixed_shapes_without_batching(basic):
    metadata = basic.get("/v2/models/fixed_shape").json
    assert metadata["inputs"][0]["shape"] == [2, 3]
    assert metadata["outputs"][0]["shape"] == [3, 2]


def test_model_metadata_shows_the_shape_before_a_reshape(basic):
    assert basic.get("/v2/models/reshaped").json["inputs"][0]["shape"] == [-1, 1]


def test_model_metadata_lists_optional_inputs_too(basic):
    metadata = basic.get("/v2/models/optional_inputs").json
    assert [entry["name"] for entry in metadata["inputs"]] == ["INPUT0", "INPUT1", "INPUT2"]


def test_string_tensors_have_the_data_type_bytes(basic):
    metadata = basic.get("/v2/models/faulty").json
    assert metadata["inputs"][0]["datatype"] == "BYTES"


def test_model_metadata_lists_every_version(basic):
    assert basic.get("/v2/models/versioned_all").json["versions"] == ["1", "2", "3"]


def test_model_metadata_of_one_version_lists_that_version(basic):
    assert basic.get("/v2/models/versioned_all/versions/2").json["versions"] == ["2"]


@pytest.mark.parametrize(
    "path",
    [
        "/v2/models/absent",
        "/v2/models/plain/versions/9",
        "/v2/models/absent/config",
        "/v2/models/absent/versions/1",
    ],
)
def test_unknown_model_or_version_answers_404_with_an_error(basic, path):
    assert refused(basic.get(path), 404)


def test_unknown_model_is_named_in_the_error(basic):
    assert "absent" in basic.get("/v2/models/absent").error


def test_grpc_server_live_and_ready(grpc):
    assert grpc.is_server_live() and grpc.is_server_ready()


def test_grpc_model_ready(grpc):
    assert grpc.is_model_ready("plain")
    assert grpc.is_model_ready("plain", "1")


def test_grpc_model_ready_is_false_for_what_is_unknown(grpc):
    assert not grpc.is_model_ready("absent")
    assert not grpc.is_model_ready("plain", "9")


def test_grpc_model_metadata_matches_http(basic, grpc):
    for name in ("add_sub", "fixed_shape", "versioned_all", "optional_inputs"):
        over_http = basic.get(f"/v2/models/{name}").json
        over_grpc = grpc.get_model_metadata(name)
        assert over_grpc.name == over_http["name"]
        assert over_grpc.platform == over_http["platform"]
        assert list(over_grpc.versions) == over_http["versions"]
        for kind in ("inputs", "outputs"):
            assert [
                {"name": entry.name, "datatype": entry.datatype, "shape": list(entry.shape)}
                for entry in getattr(over_grpc, kind)
            ] == over_http[kind]


def test_grpc_metadata_of_an_unknown_model_is_not_found(grpc):
    with pytest.raises(InferenceServerException) as error:
        grpc.get_model_metadata("absent")
    assert error.value.status() == "StatusCode.NOT_FOUND"


def test_grpc_metadata_of_an_unknown_version_is_not_found(grpc):
    with pytest.raises(InferenceServerException) as error:
        grpc.get_model_metadata("plain", "9")
    assert error.value.status() == "StatusCode.NOT_FOUND"


def test_grpc_version_must_be_a_number(stub):
    import grpc as grpc_library

    with pytest.raises(grpc_library.RpcError) as error:
        stub.ModelMetadata(pb.ModelMetadataRequest(name="plain", version="one"))
    assert error.value.code() in (
        grpc_library.StatusCode.INVALID_ARGUMENT,
        grpc_library.StatusCode.NOT_FOUND,
    )


def test_grpc_health_protocol_reports_serving(basic):
    import grpc as grpc_library

    with grpc_library.insecure_channel(basic.grpc_address) as channel:
        check = channel.unary_unary(
            "/grpc.health.v1.Health/Check", request_serializer=bytes, response_deserializer=bytes
        )
        # An empty HealthCheckRequest; field 1 of the answer is SERVING.
        assert check(b"") == b"\x08\x01"


def test_unknown_grpc_method_is_unimplemented(basic):
    import grpc as grpc_library

    with grpc_library.insecure_channel(basic.grpc_address) as channel:
        call = channel.unary_unary(
            "/inference.GRPCInferenceService/Nothing",
            request_serializer=bytes,
            response_deserializer=bytes,
        )
        with pytest.raises(grpc_library.RpcError) as error:
            call(b"")
        assert error.value.code() == grpc_library.StatusCode.UNIMPLEMENTED


def test_connection_is_kept_open_between_requests(basic):
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", basic.http_port, timeout=20)
    connection.connect()
    first = connection.sock
    for _ in range(5):
        connection.request("GET", "/v2")
        connection.getresponse().read()
        assert connection.sock is first
    connection.close()


def test_header_names_are_case_insensitive(basic):
    response = basic.raw(b"GET /v2/models/plain HTTP/1.1\r\nhOsT: x\r\ncOnNeCtIoN: close\r\n\r\n")
    assert response.startswith(b"HTTP/1.1 200")
