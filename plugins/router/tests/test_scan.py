"""What the router reads of a message of inference."""

import pytest
from core_router.grpc.native.blocks import block_of, field, fields_of, status_of, without
from core_router.grpc.native.scan import request_fields, response_fields
from core_router.grpc.statuses import seconds_of, timeout_of
from routing.grpc_servers import request, response

from frontends.grpc.protocol import messages


def scanned(made):
    return request_fields(b"\0\0\0\0\0" + made.SerializeToString(), 5)


def test_names_of_a_request():
    made = request("modèle", *range(1000), id=7)
    made.model_version = "3"

    found = scanned(made)

    assert (found.model, found.version, found.id) == ("modèle", "3", "7")
    assert found.sequence is None


def test_the_begin_of_a_large_request_has_its_model():
    data = request("m", *range(1000)).SerializeToString()

    assert request_fields(data[:50], 0).model == "m"
    assert request_fields(data[:2], 0).model == ""


@pytest.mark.parametrize(
    ("given", "identifier"), [(7, 7), (-7, -7), (2**62, 2**62), ("a b", "a b")]
)
def test_a_sequence(given, identifier):
    found = scanned(request("m", sequence_id=given, sequence_start=True, sequence_end=False))

    assert found.sequence == (identifier, True, False)


def test_a_sequence_of_an_unsigned_number():
    made = request("m")
    made.parameters["sequence_id"].uint64_param = 2**64 - 1

    assert scanned(made).sequence.identifier == 2**64 - 1


@pytest.mark.parametrize("given", [0, ""])
def test_no_sequence(given):
    assert scanned(request("m", sequence_id=given, sequence_start=True)).sequence is None


def test_other_messages_have_their_names_in_the_same_fields():
    found = scanned(messages.ModelConfigRequest(name="m", version="2"))

    assert (found.model, found.version) == ("m", "2")


def test_broken_bytes_have_no_names():
    for data in (b"\xff" * 20, b"\x0a\xff\xff\xff\xff\x0f", b"\x0a", b"", b"\x0b"):
        assert request_fields(data, 0).model == ""
        assert response_fields(data, 5) == (False, "", "", False)


def test_a_response_of_a_stream():
    made = messages.ModelStreamInferResponse(error_message="no")
    made.infer_response.CopyFrom(response("m", "7"))

    assert response_fields(made.SerializeToString(), 0) == (True, "m", "7", False)


@pytest.mark.parametrize("is_last", [None, True, False])
def test_a_response_that_others_follow(is_last):
    made = messages.ModelStreamInferResponse()
    made.infer_response.CopyFrom(response("m", "7", "other parameters"))
    if is_last is not None:
        made.infer_response.parameters["triton_final_response"].bool_param = is_last

    assert response_fields(made.SerializeToString(), 0)[3] is (is_last is False)


def test_blocks():
    fields = [(b"grpc-status", b"14"), (b"x-bin", b""), (b"grpc-message", b"a%20b")]
    block = block_of(fields)

    assert fields_of(block) == fields
    assert field(block, b"grpc-message") == b"a%20b"
    assert field(block, b"grpc") is None
    assert (status_of(block), status_of(b""), status_of(None)) == (14, -1, -1)
    assert fields_of(without(block, b"x-bin")) == [fields[0], fields[2]]
    assert status_of(block_of([(b"grpc-status", b"what")])) == 2


@pytest.mark.parametrize(
    ("timeout", "seconds"),
    [
        (b"5S", 5),
        (b"2M", 120),
        (b"250m", 0.25),
        (b"1H", 3600),
        (b"x", 86400),
        (b"9" * 9 + b"S", 86400),
        (b"9" * 400 + b"H", 86400),
    ],
)
def test_timeouts(timeout, seconds):
    assert seconds_of(timeout) == seconds


def test_a_timeout_has_eight_digits_at_most():
    assert timeout_of(1.5) == b"1500000u"
    assert timeout_of(0) == b"1u"
    assert timeout_of(1e10) == b"99999999S"
