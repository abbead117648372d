"""Binary tensors in bodies whose Content-Type gives the size of the JSON part."""

import pytest
from core_platforms.binary import BinaryForm
from multidict import CIMultiDict, CIMultiDictProxy

from core.errors import CoreError, Kind
from frontends.http.message import HttpRequest, HttpResponse

START = "application/x+json;json-header-size="
SIZE = "Inference-Header-Content-Length"
BODY = b"x" * 20


class Service:
    """Returns its input, and keeps the request headers."""

    def __init__(self, **headers):
        self.headers = {"Content-Type": "application/octet-stream", **headers}

    async def __call__(self, server, call):
        self.saw = call.headers
        return HttpResponse(200, self.headers, b"")


async def asked(service, answers=False, **headers):
    form = BinaryForm("application/x+json", answers=answers)
    sent = CIMultiDict({name.replace("_", "-"): value for name, value in headers.items()})
    call = HttpRequest("POST", "/", {}, CIMultiDictProxy(sent), BODY)
    return await form.service(service)(None, call)


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", "0"), ("7", "7"), ("20", "20"), ("+7", "7"), (" 7", "7"), ("7;x=1", "7"), ("-0", "0")],
)
async def test_the_size_is_the_number_after_the_type(text, size):
    service = Service()

    await asked(service, Content_Type=START + text)

    assert service.saw[SIZE] == size


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (START, "Unable to parse inference header size, got: "),
        (START + "abc", "Unable to parse inference header size, got: abc"),
        (START + "\u0667", "Unable to parse inference header size"),
        (START + "21", r"should be in range \(0, 20\), got: 21"),
        (START + "-1", r"should be in range \(0, 20\), got: -1"),
        (START + "9" * 5000, "value is out of range, got: 999"),
        (START + "-" + "9" * 50, "value is out of range"),
        (f"text/plain, {START}7", "starts with 'application/x"),
    ],
)
async def test_an_invalid_size_in_the_body_is_refused(kind, text):
    with pytest.raises(CoreError, match=text) as error:
        await asked(Service(), Content_Type=kind)

    assert error.value.kind is Kind.INVALID
    assert len(error.value.message) < 300


async def test_other_types_are_json_and_headers_of_v2_do_not_count():
    service = Service()

    await asked(
        service,
        content_type="application/json",
        inference_header_content_length="3",
        accept_encoding="gzip",
        content_encoding="br",
        traceparent="kept",
    )

    assert dict(service.saw) == {"content-type": "application/json", "traceparent": "kept"}


async def test_a_response_has_the_platforms_form_if_required():
    answer = await asked(Service(**{SIZE: "5", "X": "kept"}), answers=True)
    assert answer.headers == {"Content-Type": START + "5", "X": "kept"}

    answer = await asked(Service(**{SIZE: "5"}), answers=False)
    assert answer.headers == {"Content-Type": "application/octet-stream", SIZE: "5"}

    answer = await asked(Service(), answers=True)
    assert answer.headers == {"Content-Type": "application/octet-stream"}
