"""core replay over TLS, to a server that demands certificates of its clients."""

import shutil
import ssl
import subprocess

import pytest
from core_capture.replay.tls import Tls

import core
from core.errors import CoreError

from .conftest import bind_models, counts, message

pytestmark = pytest.mark.skipif(
    not shutil.which("openssl"), reason="certificates are made by the program openssl"
)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Make a certificate for this machine that signs itself; return its file and that of its key."""
    folder = tmp_path_factory.mktemp("tls")
    key, found = folder / "key.pem", folder / "certificate.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    make += ["-keyout", key, "-out", found, "-subj", "/CN=localhost"]
    make += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run(make, check=True, capture_output=True)
    return str(found), str(key)


@pytest.fixture(scope="module")
def mutual(certificate):
    """A server that takes only clients with its own certificate; returns the flags of its addresses."""
    found, key = certificate
    options = {}
    for protocol in ("http", "grpc"):
        options[f"{protocol}_use_ssl"] = options[f"{protocol}_use_ssl_mutual"] = True
        options[f"{protocol}_server_cert"] = options[f"{protocol}_root_cert"] = found
        options[f"{protocol}_server_key"] = key
    with core.Server(**options) as server:
        bind_models(server)
        ports = server.serve(http_port=0, grpc_port=0)
        yield (
            f"--url=https://127.0.0.1:{ports['http']}",
            f"--grpc-url=localhost:{ports['grpc']}",
            "--ssl-grpc-use-ssl",
            f"--ssl-https-ca-certificates-file={found}",
            f"--ssl-grpc-root-certifications-file={found}",
        )


@pytest.fixture
def recorded(capture):
    client = capture(capture_answers=True)
    client.infer(1.0, 2.0)
    client.stub.ModelInfer(message(3.0), timeout=20)
    client.records(2)
    client.stop()
    return client.folder


def test_the_sender_shows_its_certificate(recorded, mutual, certificate, command):
    found, key = certificate
    own = (
        f"--ssl-https-client-certificate-file={found}",
        f"--ssl-https-private-key-file={key}",
        f"--ssl-grpc-certificate-chain-file={found}",
        f"--ssl-grpc-private-key-file={key}",
    )

    done = command("replay", recorded, *mutual, *own, "--speed", "max")

    assert (done.status, done.err) == (0, "")
    assert counts(done.out) == {"answers are equal": 2}


def test_a_server_that_is_not_trusted_may_be_asked(recorded, mutual, certificate, command):
    found, key = certificate
    own = ("--ssl-https-client-certificate-file", found, "--ssl-https-private-key-file", key)
    sent = ("--url", mutual[0].partition("=")[2], "--protocol=http", "--speed=max")

    assert command("replay", recorded, *sent, *own).status == 1
    assert command("replay", recorded, *sent, *own, "--ssl-https-verify-peer=0").status == 0


def test_without_a_certificate_there_are_no_answers(recorded, mutual, command):
    done = command("replay", recorded, *mutual, "--speed", "max")

    assert done.status == 1
    assert counts(done.out)["answers are equal"] == 0


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--ssl-https-client-certificate-file=a"], "have a meaning with --url=https://"),
        (["--ssl-grpc-private-key-file=a"], "have a meaning with --ssl-grpc-use-ssl"),
        (
            ["--url=https://a", "--ssl-https-private-key-file=a"],
            "needs --ssl-https-client-certificate-file",
        ),
        (
            ["--url=https://a", "--ssl-https-client-certificate-file=/no"],
            "cannot use the certificates (/no)",
        ),
        (
            ["--ssl-grpc-use-ssl", "--ssl-grpc-root-certifications-file=/no"],
            "cannot use the certificates (/no)",
        ),
    ],
)
def test_wrong_files(recorded, command, flags, text):
    done = command("replay", recorded, *flags)

    assert done.status == 1
    assert text in done.err


def test_what_is_checked_of_a_server():
    signed, named = Tls(names_host=False).context(), Tls().context()
    assert (signed.verify_mode, signed.check_hostname) == (ssl.CERT_REQUIRED, False)
    assert (named.verify_mode, named.check_hostname) == (ssl.CERT_REQUIRED, True)
    trusting = Tls(verifies=False).context()
    assert (trusting.verify_mode, trusting.check_hostname) == (ssl.CERT_NONE, False)


def test_a_file_for_grpc_that_is_no_certificate_is_refused_by_name(tmp_path):
    file = tmp_path / "text.pem"
    file.write_text("no certificate")

    with pytest.raises(CoreError, match=r"cannot use the certificates \(.*text\.pem\)"):
        Tls(certificate=str(file)).credentials()
