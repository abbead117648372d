"""Load over TLS and Unix sockets, on a real server."""

import shutil
import subprocess

import pytest
from core_bench.measure.cpu import ServerCpu
from core_bench.measure.target import Target
from core_bench.model.address import Address, parse_address
from core_bench.native.engine import HAS_GRPC
from core_bench.plan import Level, Pace, Sequences, Side, Timing, Tls

import core
from core.errors import CoreError
from core.plugins.commands import run_command

TIMING = Timing(settle_s=0.0, warmup_s=0.0)


def bind(server):
    four = {"inputs": {"x": ("FP32", [4])}, "outputs": {"y": ("FP32", [4])}}
    server.bind("double", lambda x: 2 * x, batching=True, **four)

    def words(text):
        for word in text[0].split():
            yield {"word": [word]}

    server.bind("words", words, inputs={"text": ("BYTES", [1])}, outputs={"word": ("BYTES", [1])})
    server.bind(
        "steps",
        lambda x: x,
        batching=True,
        config={"sequence_batching": {"oldest": {"max_candidate_sequences": 4}}},
        **four,
    )


def load(side, level=Level(Pace.CLOSED, 3)):  # noqa: B008
    with Target(side, TIMING) as target:
        target.check()
        tally, alive = target.generator(level).run(0.0, 0.2, 10)
    assert alive and not tally.errors
    return tally.counts


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    """A server with TLS; returns its ports and the file of its certificate."""
    if not shutil.which("openssl"):
        pytest.skip("certificates are made by the program openssl")
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = self_signed(folder)
    server = core.Server(**tls_options(certificate, key)).start()
    bind(server)
    yield server.serve(http_port=0, grpc_port=0), certificate
    server.stop()


def self_signed(folder):
    """Make a certificate for this machine that signs itself; return its file and that of its key."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    make += ["-keyout", key, "-out", certificate, "-subj", "/CN=localhost"]
    make += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run(make, check=True, capture_output=True)
    return str(certificate), str(key)


def tls_options(certificate, key):
    options = {}
    for protocol in ("http", "grpc"):
        options[f"{protocol}_use_ssl"] = True
        options[f"{protocol}_server_cert"] = certificate
        options[f"{protocol}_server_key"] = key
    return options


def test_https(secure):
    ports, ca_file = secure
    url = f"https://127.0.0.1:{ports['http']}"
    for more in ({}, {"model": "words", "streaming": True, "string_data": "a b"}):
        side = Side(
            **{"name": "x", "model": "double", "url": url, "tls": Tls(ca_file=ca_file), **more}
        )
        counts = load(side)
        assert counts["completed"] >= 10
        assert counts["responses"] == (2 * counts["completed"] if more else 0)


def test_https_with_sequences(secure):
    ports, ca_file = secure
    url = f"https://127.0.0.1:{ports['http']}"

    counts = load(Side("s", "steps", url, tls=Tls(ca_file=ca_file), sequences=Sequences(4, 0.0)))

    assert counts["sequences"] >= 2


def test_grpc_over_tls(secure):
    ports, ca_file = secure
    side = Side(
        "x", "double", f"localhost:{ports['grpc']}", protocol="grpc", tls=Tls(True, ca_file)
    )

    assert load(side)["completed"] >= 10
    assert load(side, Level(Pace.CONSTANT, 200))["all"] == pytest.approx(40, abs=3)


@pytest.fixture(scope="module")
def mutual(tmp_path_factory):
    """A server that takes only clients with its own certificate; returns its ports and both files."""
    if not shutil.which("openssl"):
        pytest.skip("certificates are made by the program openssl")
    certificate, key = self_signed(tmp_path_factory.mktemp("mutual"))
    options = tls_options(certificate, key)
    for protocol in ("http", "grpc"):
        options[f"{protocol}_use_ssl_mutual"] = True
        options[f"{protocol}_root_cert"] = certificate
    server = core.Server(**options).start()
    bind(server)
    yield server.serve(http_port=0, grpc_port=0), certificate, key
    server.stop()


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_client_shows_its_certificate(mutual, protocol, capsys):
    ports, certificate, key = mutual
    names = {
        "http": ("https-ca-certificates", "https-client-certificate", "https-private-key"),
        "grpc": ("grpc-root-certifications", "grpc-certificate-chain", "grpc-private-key"),
    }
    scheme = "https://" if protocol == "http" else ""
    command = ["-m", "double", "-i", protocol, "-u", f"{scheme}localhost:{ports[protocol]}"]
    command += ["--ssl-grpc-use-ssl"] * (protocol == "grpc") + ["--request-count", "20"]
    root, *own = (f"--ssl-{each}-file" for each in names[protocol])

    shown = run_command("bench", [*command, root, certificate, own[0], certificate, own[1], key])
    found = capsys.readouterr().out
    hidden = run_command("bench", [*command, root, certificate])

    assert (shown, hidden) == (0, 1), found


def test_a_certificate_that_is_not_trusted(secure):
    ports, _ = secure
    with pytest.raises(CoreError, match=r"(?i)certificate"):
        Target(Side("x", "double", f"https://127.0.0.1:{ports['http']}"), TIMING)

    trusted = Tls(verify=False)
    with pytest.raises(CoreError, match="--threads needs compiled code"):
        url = f"https://127.0.0.1:{ports['http']}"
        Target(Side("x", "double", url, tls=trusted), Timing(threads=2))

    unchecked = Side("x", "double", f"https://127.0.0.1:{ports['http']}", tls=Tls(verify=False))
    assert load(unchecked)["completed"] >= 10


def test_unix_sockets(tmp_path):
    paths = {protocol: f"unix:{tmp_path}/{protocol}.sock" for protocol in ("http", "grpc")}
    server = core.Server().start()
    bind(server)
    server.serve(http_port=0, address=paths["http"])
    server.serve(grpc_port=0, address=paths["grpc"])
    try:
        for protocol in ("http", "grpc") if HAS_GRPC else ("http",):
            side = Side("x", "double", paths[protocol], protocol=protocol)
            assert load(side)["completed"] >= 10
        address = parse_address(paths["http"], "http")
        # The server is in the process of the load generator.
        assert "not visible" in ServerCpu(address).reason
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("text", "protocol", "address"),
    [
        ("", "http", Address("localhost", 8000)),
        ("", "grpc", Address("localhost", 8001)),
        ("host", "http", Address("host", 8000)),
        ("host:9", "grpc", Address("host", 9)),
        ("[::1]:9", "http", Address("::1", 9)),
        ("http://host", "http", Address("host", 80)),
        ("http://localhost", "http", Address("localhost", 8000)),
        ("https://host/a/b/", "http", Address("host", 443, True, "/a/b")),
        ("grpcs://host:9", "grpc", Address("host", 9, True)),
        ("unix:/a", "http", Address("/a", 0)),
        ("unix:///a", "http", Address("/a", 0)),
    ],
)
def test_addresses(text, protocol, address):
    assert parse_address(text, protocol) == address
