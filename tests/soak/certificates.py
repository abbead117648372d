"""A private root, and server certificates that it signs, one after the other."""

from __future__ import annotations

import subprocess
from pathlib import Path


class Certificates:
    """Files in a folder: server.crt and server.key are replaced by `renew`.

    root     PEM of the root
    serial   of the server's certificate that is in the file now
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self.serial = 0
        _openssl(
            *(
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
            ),
            *("-keyout", str(folder / "root.key"), "-out", str(folder / "root.crt")),
            *("-days", "2", "-subj", "/CN=soak root"),
        )
        self.root = (folder / "root.crt").read_bytes()
        self.renew()

    @property
    def certificate(self) -> Path:
        return self._folder / "server.crt"

    @property
    def key(self) -> Path:
        return self._folder / "server.key"

    def renew(self) -> None:
        """Another certificate with another key, each file replaced at once."""
        self.serial += 1
        request, names = self._folder / "server.csr", self._folder / "names"
        names.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        certificate, key = self._folder / "new.crt", self._folder / "new.key"
        _openssl(
            *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-keyout", str(key), "-out", str(request), "-subj", "/CN=localhost"),
        )
        _openssl(
            *("x509", "-req", "-in", str(request), "-CA", str(self._folder / "root.crt")),
            *("-CAkey", str(self._folder / "root.key"), "-set_serial", str(self.serial)),
            *("-days", "2", "-extfile", str(names), "-out", str(certificate)),
        )
        key.replace(self.key)
        certificate.replace(self.certificate)


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
