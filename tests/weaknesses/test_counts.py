"""Many of something: chunks, levels, outputs, classes, headers, names."""

import json

import grpc
import pytest
import tritonclient.grpc.service_pb2 as pb

HEAD = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\n"


def test_a_body_in_very_many_chunks_is_refused(server):
    """CVE-2025-23310, CVE-2025-23311: each chunk took of the stack, some three megabytes of them all."""
    chunks = b"1\r\nx\r\n" * 500_000

    answer = server.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"exceeds maximum of 65536 non-empty chunks" in answer


@pytest.mark.parametrize(
    "opening", [b"[", b'{"a":', b'{"inputs":[{"data":', b'{"parameters":{"a":']
)
@pytest.mark.parametrize("depth", [2000, 200_000])
def test_json_is_not_followed_into_any_depth(server, opening, depth):
    """CVE-2025-23325: uncontrolled recursion."""
    assert server.infer(opening * depth).status == 400


def test_data_is_a_hundred_deep_at_the_most(server):
    def nested(depth):
        tensor = {"name": "x", "datatype": "FP32", "shape": [1], "data": 1}
        for _ in range(depth):
            tensor["data"] = [tensor["data"]]
        return {"inputs": [tensor]}

    assert server.infer(nested(100)).status == 200
    assert server.infer(nested(101)).status == 400


@pytest.mark.parametrize(
    "path", ["/v2/repository/index", "/v2/logging", "/v2/models/echo/generate"]
)
def test_no_other_json_is_followed_into_any_depth_either(server, path):
    assert server.ask("POST", path, b'{"a":' * 100_000).status == 400


def test_an_output_is_wanted_once(server, document, message):
    """CVE-2026-24146: very many requested outputs took all memory."""
    wanted = message(1.0)
    for _ in range(9000):
        wanted.outputs.add(name="y")
    many = document(1.0, outputs=[{"name": "y"}] * 9000)
    beyond = document(1.0, outputs=[{"name": "y"}] * 10_001)

    answer = server.infer(many)

    assert answer.status == 400 or len(json.loads(answer.body)["outputs"]) == 1
    assert server.infer(beyond).status == 400
    assert server.refused("ModelInfer", wanted).code() is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("what", ["inputs", "outputs"])
def test_there_are_so_many_inputs_and_outputs_at_the_most(server, document, message, what):
    """CVE-2025-33211: unchecked quantities."""
    tensor = {"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}
    entries = [tensor | {"name": f"n{i}"} for i in range(10_001)]
    wanted = message(1.0)
    for each in entries:
        getattr(wanted, what).add(name=each["name"])

    assert server.infer(document(1.0) | {what: entries}).status == 400
    assert server.refused("ModelInfer", wanted).code() is grpc.StatusCode.INVALID_ARGUMENT


def test_there_are_so_many_parameters_and_dimensions_at_the_most(server, document, message):
    """CVE-2025-33211."""
    many = {f"p{i}": 1 for i in range(10_001)}
    wanted, deep = message(1.0), message(1.0)
    for name in many:
        wanted.parameters[name].int64_param = 1
    deep.inputs[0].shape.extend([1] * 100_000)
    tensor = document(1.0)["inputs"][0] | {"shape": [1] * 100_000}

    assert server.infer(document(1.0, parameters=many)).status == 400
    assert server.infer({"inputs": [tensor]}).status == 400
    for each in (wanted, deep):
        assert server.refused("ModelInfer", each).code() is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("count", [-1, 2**31, 2**63, 2**64, 10**30, 1.5, "1", None, True, [1]])
def test_a_count_of_classes_is_a_number_that_there_can_be(server, document, count):
    answer = server.infer(
        document(1.0, 2.0, outputs=[{"name": "y", "parameters": {"classification": count}}])
    )

    # More classes than there are, are all of them.
    assert answer.status == 400 or len(json.loads(answer.body)["outputs"][0]["data"]) == 2


def test_a_count_of_classes_over_grpc_is_checked_too(server, message):
    for count in (-1, -(2**63), 0):
        wanted = message(1.0)
        wanted.outputs.add(name="y").parameters["classification"].int64_param = count
        assert server.refused("ModelInfer", wanted).code() is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    "head",
    [
        b"X: " + b"y" * 9000 + b"\r\n",
        b"".join(b"X-%d: y\r\n" % i for i in range(1000)),
        b"X" * 9000 + b": y\r\n",
        b"X: " + b"y" * 3_000_000 + b"\r\n",
    ],
)
def test_headers_have_bounds(server, head):
    answer = server.send(HEAD + head + b"Content-Length: 0\r\n\r\n")

    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 431 "))


def test_headers_of_grpc_have_bounds(server, message):
    with pytest.raises(grpc.RpcError) as error:
        server.stub.ModelInfer(message(1.0), metadata=[("x", "y" * 100_000)], timeout=30)

    assert error.value.code() in (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.INTERNAL,  # the client's own word for a stream that was reset
        grpc.StatusCode.UNAVAILABLE,
    )


def test_a_very_long_name_does_not_come_back_whole(server, document, message):
    name = "n" * 3_000_000
    wanted = document(1.0)
    wanted["inputs"][0]["name"] = name

    answer = server.infer(wanted)

    assert answer.status == 400
    assert len(answer.body) < 100_000
    wanted = message(1.0)
    wanted.inputs[0].name = name
    assert len(server.refused("ModelInfer", wanted).details()) < 10_000


def test_reserved_parameters_are_refused(server, document, message):
    wanted = message(1.0)
    wanted.parameters["triton_secret"].bool_param = True

    assert server.infer(document(1.0, parameters={"triton_secret": 1})).status == 400
    assert server.refused("ModelInfer", wanted).code() is grpc.StatusCode.INVALID_ARGUMENT


def test_reserved_headers_are_not_forwarded(serve, document):
    served = serve(http_header_forward_pattern=".*")

    answer = served.infer(document(1.0), headers={"Triton_Secret": "1"})

    assert (answer.status, "reserved" in answer.text) == (400, True)


def test_names_of_tensors_and_models_are_data(server):
    for name in ("%s%s%n", "{0}", "\ud800", "a\0b", "<script>"):
        text = json.dumps(
            {"inputs": [{"name": name, "datatype": "FP32", "shape": [1], "data": [1]}]}
        )
        assert server.infer(text.encode()).status == 400
    assert (
        server.refused("ModelInfer", pb.ModelInferRequest(model_name="%s%n{0}")).code()
        is grpc.StatusCode.NOT_FOUND
    )
