"""The refusals of a response sender, without a server."""

import pytest
import triton_python_backend_utils as pb_utils


class Sent:
    """A host that keeps the responses of a sender."""

    def __init__(self):
        self.flags = []

    def pace(self, key):
        return None

    def abandon(self, key):
        self.abandoned = key

    def send(self, key, wanted, response, flags, pace):
        self.flags.append(flags)


NO_RESPONSE = "Inference Response object must be provided when the response flags is set to zero."
UNSUPPORTED = "Unable to send response. Unsupported flag provided."
CLOSED = "Unable to send response. Response sender has been closed."
ONLY_ONE = "Unable to send response. Non-decoupled model cannot send more than one response."
FINAL_FIRST = (
    "Unable to send response. Non-decoupled model cannot send complete final before sending a "
    "response."
)
# Calls of a model, each with whether it has a response and its flags, and the error of the last one.
SENDS = [
    (False, [(False, 0)], NO_RESPONSE),
    (False, [(True, 5)], UNSUPPORTED),
    (False, [(False, 1)], FINAL_FIRST),
    (False, [(True, 0), (True, 0)], ONLY_ONE),
    (False, [(True, 1), (True, 1)], ONLY_ONE),
    (False, [(True, 0), (False, 1), (False, 1)], CLOSED),
    (False, [(True, 1), (False, 1)], CLOSED),
    (True, [(False, 0)], NO_RESPONSE),
    (True, [(True, 2)], UNSUPPORTED),
    (True, [(True, 0), (True, 0), (True, 1), (True, 0)], CLOSED),
    (True, [(False, 1), (False, 1)], CLOSED),
    (True, [(False, 1), (False, 0)], NO_RESPONSE),
]


@pytest.mark.parametrize("decoupled,sends,text", SENDS)
def test_misuse_of_a_sender_is_an_error_in_tritons_order(decoupled, sends, text):
    host = Sent()
    sender = pb_utils.InferenceResponseSender(host, (1, 0), frozenset(), decoupled)
    *good, (has_response, flags) = sends
    for given, each in good:
        sender.send(pb_utils.InferenceResponse() if given else None, each)

    with pytest.raises(pb_utils.TritonModelException) as error:
        sender.send(pb_utils.InferenceResponse() if has_response else None, flags)

    assert str(error.value) == text
    assert host.flags == [each for _, each in good]
