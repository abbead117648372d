"""certificate_name: who has shown a certificate to the server (--http-use-ssl-mutual, --grpc-use-ssl-mutual).

Only certificates count that the TLS library has verified: those of other clients never come so far.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

LONGEST_NAME = 128  # characters; a longer name ends with its digest
_DIGEST_BYTES = 8
_ALTERNATIVES = ("URI", "DNS", "email")


def certificate_name(certificate: Mapping[str, Any] | None) -> str:
    """Return the name in a certificate of ssl.SSLSocket.getpeercert; "" without one.

    It is the common name of the subject, else the first URI, DNS name or mail address of subjectAltName.
    """
    if not certificate:
        return ""
    subject = (pair for group in certificate.get("subject", ()) for pair in group)
    names = [text for kind, text in subject if kind == "commonName"]
    others = dict(reversed(certificate.get("subjectAltName", ())))
    return first_name([*names, *(others.get(kind, "") for kind in _ALTERNATIVES)])


def first_name(names: Iterable[str]) -> str:
    """Return the first of some names that is not empty, without characters that break lines of logs."""
    for name in names:
        if text := "".join(each if each.isprintable() else "?" for each in name.strip()):
            return text if len(text) <= LONGEST_NAME else _shortened(text)
    return ""


def _shortened(text: str) -> str:
    """Return a name of LONGEST_NAME characters, another one for each long text."""
    end = "~" + blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()
    return text[: LONGEST_NAME - len(end)] + end
