"""Certificates that a test makes with openssl: a root, and what it has signed."""

import ssl
import subprocess


class Certificates:
    """PEM files in a folder.

    root                 issuer of all
    server, client       certificate and key; the server's is for 127.0.0.1, localhost and models.test
    """

    def __init__(self, folder):
        self._folder = folder
        self._openssl("req", "-x509", *_KEY, "-days", "2", "-subj", "/CN=root", *_files("root"))
        self.root = str(folder / "root.crt")
        self.server = self.issue("server", "IP:127.0.0.1,DNS:localhost,DNS:models.test")
        self.client = self.issue("client", "DNS:router")

    def issue(self, name, alternatives):
        """Sign a certificate; return the paths of it and its key."""
        (self._folder / "names").write_text(f"subjectAltName={alternatives}")
        subject = ("-subj", f"/CN={name}")
        self._openssl("req", *_KEY, *subject, "-keyout", f"{name}.key", "-out", f"{name}.csr")
        self._openssl(
            *("x509", "-req", "-in", f"{name}.csr", "-CA", "root.crt", "-CAkey", "root.key"),
            *("-CAcreateserial", "-days", "2", "-extfile", "names", "-out", f"{name}.crt"),
        )
        return str(self._folder / f"{name}.crt"), str(self._folder / f"{name}.key")

    def trusting(self, client=None):
        """Return the context of a client that trusts the root."""
        found = ssl.create_default_context(cafile=self.root)
        if client is not None:
            found.load_cert_chain(*client)
        return found

    def serving(self):
        """Return the context of a server."""
        found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        found.load_cert_chain(*self.server)
        return found

    def _openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self._folder, check=True, capture_output=True)


_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def _files(name):
    return ("-keyout", f"{name}.key", "-out", f"{name}.crt")
