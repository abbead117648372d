"""Certificates for frontends that are served over TLS."""

import subprocess
from types import SimpleNamespace

import pytest


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """PEM files: a root, and a server and a client that it signed; .stranger signed itself."""
    folder = tmp_path_factory.mktemp("certificates")

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    def own(name):
        openssl(
            *(
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-subj",
                f"/CN={name}",
            ),
            *("-keyout", f"{name}.key", "-out", f"{name}.crt"),
        )

    try:
        own("root")
    except FileNotFoundError:
        pytest.skip("certificates are made by the program openssl")
    own("stranger")
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
    for name in ("server", "client"):
        openssl(
            *("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"),
            *("-keyout", f"{name}.key", "-out", f"{name}.csr"),
        )
        openssl(
            *("x509", "-req", "-in", f"{name}.csr", "-CA", "root.crt", "-CAkey", "root.key"),
            *("-CAcreateserial", "-days", "2", "-extfile", "names", "-out", f"{name}.crt"),
        )
    files = {path.name.replace(".", "_"): path for path in folder.glob("*.*")}
    return SimpleNamespace(**files)
