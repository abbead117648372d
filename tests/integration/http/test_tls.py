"""HTTP over TLS: the certificates of server and clients, and clients without TLS.

test_wire, test_lanes and test_lifecycle check that everything else is as without TLS.
"""

import asyncio
import logging
import ssl
import subprocess

import numpy as np
import pytest
import tritonclient.http as client_library

from core.errors import CoreError, Kind

LIVE = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def over_tls():
    return True


@pytest.fixture
def mutual(certificates):
    return {"http_use_ssl_mutual": True, "http_root_cert": str(certificates.root_crt)}


def client_context(certificates, own=None):
    context = ssl.create_default_context(cafile=certificates.root_crt)
    if own is not None:
        context.load_cert_chain(
            getattr(certificates, f"{own}_crt"), getattr(certificates, f"{own}_key")
        )
    return context


async def status(port, context):
    """Return the status of a response over a separate connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    writer.write(LIVE)
    line = await asyncio.wait_for(reader.readline(), 10)
    writer.close()
    return int(line.split()[1])


async def test_a_client_that_trusts_the_root_is_answered(site, certificates):
    assert await status(site.frontend.port, client_context(certificates)) == 200


async def test_a_client_that_does_not_trust_the_certificate_disconnects(site):
    with pytest.raises(ssl.SSLCertVerificationError):
        await status(site.frontend.port, ssl.create_default_context())


async def test_the_real_client_takes_the_same_root(site, certificates):
    values = np.arange(1_000_000, dtype=np.float32)

    def ask():
        with client_library.InferenceServerClient(
            f"127.0.0.1:{site.frontend.port}",
            ssl=True,
            ssl_context_factory=lambda: client_context(certificates),
        ) as client:
            tensor = client_library.InferInput("x", values.shape, "FP32")
            tensor.set_data_from_numpy(values)
            return client.infer("echo", [tensor]).as_numpy("y")

    np.testing.assert_array_equal(await asyncio.to_thread(ask), values)


async def test_the_protocol_is_named(site, certificates):
    context = client_context(certificates)
    context.set_alpn_protocols(["h2", "http/1.1"])
    _, writer = await asyncio.open_connection("127.0.0.1", site.frontend.port, ssl=context)

    assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"
    writer.close()


@pytest.mark.parametrize("version", ["TLSv1", "TLSv1_1"])
async def test_versions_that_are_no_longer_safe_are_refused(site, version):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with pytest.warns(DeprecationWarning):
        context.minimum_version = context.maximum_version = getattr(ssl.TLSVersion, version)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await status(site.frontend.port, context)


async def test_mutual_tls_answers_a_client_with_a_certificate(open_with, certificates, mutual):
    async with open_with(**mutual) as site:
        assert await status(site.frontend.port, client_context(certificates, "client")) == 200


@pytest.mark.parametrize("own", [None, "stranger"])
async def test_mutual_tls_refuses_other_clients(open_with, certificates, mutual, own):
    async with open_with(**mutual) as site:
        with pytest.raises((ssl.SSLError, ConnectionError, IndexError)):
            await status(site.frontend.port, client_context(certificates, own))
        assert await status(site.frontend.port, client_context(certificates, "client")) == 200


async def test_a_client_without_tls_gets_no_answer_and_no_place_in_the_log(
    site, certificates, caplog
):
    with caplog.at_level(logging.WARNING):
        reader, writer = await asyncio.open_connection("127.0.0.1", site.frontend.port)
        writer.write(LIVE)
        answer = await asyncio.wait_for(reader.read(), 10)
        writer.close()
    assert b"HTTP" not in answer and caplog.text == ""
    assert await status(site.frontend.port, client_context(certificates)) == 200


async def test_curl_connects_with_tls(site, certificates):
    curl = ["curl", "-sS", "--cacert", str(certificates.root_crt)]
    url = f"https://localhost:{site.frontend.port}/v2"
    try:
        found = await asyncio.to_thread(subprocess.run, [*curl, url], capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no curl")
    assert b'"name":' in found.stdout, found.stderr


class TestFiles:
    async def refusal(self, open_with, **options):
        with pytest.raises(CoreError) as error:
            async with open_with(**options):
                pass
        assert error.value.kind is Kind.INVALID
        return error.value.message

    @pytest.mark.parametrize("option", ["key", "cert"])
    async def test_a_missing_file_option_is_an_error(self, open_with, option):
        text = await self.refusal(open_with, **{f"http_server_{option}": ""})
        assert text.endswith(f"needs a PEM file; name it with --http-server-{option}")

    async def test_one_that_is_not_there_is_named(self, open_with):
        text = await self.refusal(open_with, http_server_cert="missing.pem")
        assert text.startswith("--http-server-cert 'missing.pem' cannot be read: No such file")

    async def test_a_root_is_needed_to_check_clients(self, open_with):
        text = await self.refusal(open_with, http_use_ssl_mutual=True)
        assert text.endswith("name it with --http-root-cert")

    @pytest.mark.parametrize("option", ["server_cert", "server_key", "root_cert"])
    async def test_one_that_holds_something_else_is_named(self, open_with, tmp_path, option):
        (tmp_path / "junk.pem").write_text("junk")
        options = {f"http_{option}": str(tmp_path / "junk.pem")}
        assert f"--http-{option.replace('_', '-')} '{tmp_path}/junk.pem'" in await self.refusal(
            open_with, **options
        )

    async def test_the_key_must_be_that_of_the_certificate(self, open_with, certificates):
        text = await self.refusal(open_with, http_server_key=str(certificates.client_key))
        assert "no certificate with its unencrypted key" in text
