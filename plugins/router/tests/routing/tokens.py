"""Tokens of operators."""

import hashlib

ROLES = {"ann": "infer", "ben": "read", "cat": "manage"}


def file_of_tokens():
    """Return the text of a file with a token for each of ROLES."""
    return "".join(
        f"{name} {role} sha256:{hashlib.sha256(f'token-{name}'.encode()).hexdigest()}\n"
        for name, role in ROLES.items()
    )


def bearer(name):
    return {"Authorization": f"Bearer token-{name}"}
