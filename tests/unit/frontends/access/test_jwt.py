"""JWT of an issuer, by the keys in a file."""

import base64
import datetime
import hmac
import json
import sys

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from core.errors import CoreError, Kind
from frontends.shared.access import AccessPolicy, Credentials, requirement
from frontends.shared.access.unauthenticated import Unauthenticated
from frontends.shared.options import SharedOptions
from frontends.shared.watched_files import WatchedFiles

NOW = 2_000_000_000
CLAIMS = {"iss": "https://issuer", "aud": "core", "sub": "alice", "exp": NOW + 60}


class Key:
    """A private key, and its public half as the file has it."""

    def __init__(self, name, algorithm="RS256"):
        self.name = name
        self.algorithm = algorithm
        if algorithm.startswith("ES"):
            self.private = ec.generate_private_key(ec.SECP256R1())
            public = jwt.algorithms.ECAlgorithm.to_jwk(self.private.public_key())
        else:
            self.private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
            public = jwt.algorithms.RSAAlgorithm.to_jwk(self.private.public_key())
        self.public = {**json.loads(public), "kid": name, "alg": algorithm, "use": "sig"}

    def token(self, head=None, **claims):
        return jwt.encode(
            {key: value for key, value in {**CLAIMS, **claims}.items() if value is not None},
            self.private,
            self.algorithm,
            {"kid": self.name} if head is None else head,
        )


@pytest.fixture(scope="module")
def key():
    return Key("first")


@pytest.fixture(scope="module")
def other():
    return Key("other", "ES256")


@pytest.fixture
def path(tmp_path, key):
    found = tmp_path / "jwks.json"
    found.write_text(json.dumps({"keys": [key.public]}))
    return found


@pytest.fixture(autouse=True)
def now(monkeypatch):
    """The time of PyJWT."""

    class Fixed(datetime.datetime):
        s = NOW

        @classmethod
        def now(cls, tz=None):
            return cls.fromtimestamp(cls.s, tz)

    monkeypatch.setattr("jwt.api_jwt.datetime", Fixed)
    return Fixed


def part_of(document):
    return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()


def options(path, **more):
    chosen = {"auth_jwt_issuer": "https://issuer", "auth_jwt_audience": "core", **more}
    return SharedOptions(auth_jwks=str(path), **chosen)


@pytest.fixture
def open_policy(path, now):
    return lambda **more: AccessPolicy(options(path, **more), now=lambda: now.s)


def refusal(policy, token):
    with pytest.raises(Unauthenticated) as caught:
        policy.identify(Credentials(token))
    assert token not in caught.value.message
    return caught.value.message


def test_a_good_token_has_a_subject_and_roles(open_policy, key):
    caller = open_policy().identify(Credentials(key.token(roles=["infer", "read", "else"])))

    assert (caller.name, caller.roles) == ("https://issuer#alice", {"infer", "read"})


@pytest.mark.parametrize(
    "claims,reason",
    [
        ({"exp": NOW - 31}, "the token has expired"),
        ({"nbf": NOW + 31}, "the token is not valid yet"),
        ({"exp": None}, "the token has no claim 'exp'"),
        ({"sub": None}, "the token has no claim 'sub'"),
        ({"aud": "elsewhere"}, "the token is for another audience"),
        ({"aud": None}, "the token has no claim 'aud'"),
        ({"iss": "https://else"}, "the token is of another issuer"),
        ({"iss": None}, "the token has no claim 'iss'"),
    ],
)
def test_a_token_with_other_claims_is_refused(open_policy, key, claims, reason):
    assert refusal(open_policy(), key.token(**claims)) == reason


def test_clocks_may_differ_a_little(open_policy, key):
    policy = open_policy()
    policy.identify(Credentials(key.token(exp=NOW - 20)))
    policy.identify(Credentials(key.token(nbf=NOW + 20)))


def test_a_token_ends_with_its_time_also_when_it_was_verified_before(open_policy, key, now):
    policy, token = open_policy(), key.token(roles=["infer"])
    assert policy.identify(Credentials(token)).is_valid()

    now.s = NOW + 91

    assert refusal(policy, token) == "the token has expired"


def test_a_token_of_a_key_that_is_not_in_the_file_is_refused(open_policy, other):
    policy = open_policy()
    assert (
        refusal(policy, other.token())
        == "the token is signed with a key that is not in --auth-jwks"
    )


def test_a_token_that_names_no_key_is_good_only_where_there_is_one(open_policy, key, other, path):
    assert open_policy().identify(Credentials(key.token(head={}))).name == "https://issuer#alice"

    path.write_text(json.dumps({"keys": [key.public, other.public]}))

    assert refusal(open_policy(), key.token(head={})) == (
        "the token is signed with a key that is not in --auth-jwks"
    )


def test_a_token_with_another_signature_is_refused(open_policy, key):
    forged = Key("first").token()
    assert refusal(open_policy(), forged) == "the token has no valid signature"
    assert refusal(open_policy(), "a.b.c") == "the token has no valid signature"
    assert refusal(open_policy(), "neither") == "the token is not known"


@pytest.mark.parametrize(
    "head", ["\udcff", "ÿ", base64.urlsafe_b64encode(b"[" * 9000).decode()], ids=ascii
)
def test_an_invalid_token_is_refused(open_policy, head):
    """An HTTP header may contain bytes that are no text: they become lone surrogates."""
    assert refusal(open_policy(), f"{head}.b.c") == "the token has no valid signature"


def test_no_algorithm_and_the_public_key_as_a_secret_are_refused(open_policy, key):
    expected = "the token is signed with an algorithm that is not allowed for its key"
    none = jwt.encode(CLAIMS, None, "none", {"kid": "first"})
    # What servers fall for that take the algorithm from the token.
    head, body = (part_of(each) for each in ({"alg": "HS256", "kid": "first"}, CLAIMS))
    signature = hmac.digest(json.dumps(key.public).encode(), f"{head}.{body}".encode(), "sha256")
    confused = f"{head}.{body}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"

    assert refusal(open_policy(), none) == expected
    assert refusal(open_policy(), confused) == expected
    assert refusal(open_policy(auth_jwt_algorithms=("ES256",)), key.token()) == expected


def test_a_token_without_a_key_id_is_of_the_only_key(open_policy, key, path, other):
    token = key.token({})
    assert open_policy().identify(Credentials(token)).known

    path.write_text(json.dumps({"keys": [key.public, other.public]}))
    assert "a key that is not in" in refusal(open_policy(), token)


@pytest.mark.parametrize(
    "claim,claims,mapping,expected",
    [
        ("roles", {"roles": "infer read"}, {}, {"infer", "read"}),
        ("scope", {"scope": "openid core.infer"}, {"infer": ("core.infer",)}, {"infer"}),
        ("a.b", {"a": {"b": ["ops"]}}, {"manage": ("ops", "sre")}, {"manage"}),
        ("https://x.org/roles", {"https://x.org/roles": ["read"]}, {}, {"read"}),
        ("roles", {"roles": ["infer"]}, {"infer": ("users",)}, set()),
        ("roles", {}, {}, set()),
        ("a.b", {"a": ["b"]}, {}, set()),
        ("roles", {"roles": {"infer": True}}, {}, set()),
        ("roles", {"roles": [1, None, "read"]}, {}, {"read"}),
    ],
)
def test_roles_are_in_the_configured_claim(open_policy, key, claim, claims, mapping, expected):
    policy = open_policy(auth_jwt_roles_claim=claim, auth_jwt_role=mapping)

    assert policy.identify(Credentials(key.token(**claims))).roles == expected


def test_a_known_caller_without_a_role_may_not(open_policy, key):
    with pytest.raises(CoreError) as caught:
        open_policy().authorize(Credentials(key.token()), requirement("inference", changes=True))

    assert caught.value.kind is Kind.FORBIDDEN
    assert caught.value.message.endswith("caller 'https://issuer#alice' has no role")


async def test_new_keys_are_read_and_older_ones_count_no_more(open_policy, key, other, path):
    policy, files = open_policy(), WatchedFiles(0)
    policy.watch(files)
    token = key.token()
    policy.identify(Credentials(token))

    path.write_text(json.dumps({"keys": [other.public]}))
    files.look()

    assert "a key that is not in" in refusal(policy, token)
    assert policy.identify(Credentials(other.token())).known


async def test_a_broken_set_of_keys_has_no_effect(open_policy, key, path, caplog):
    policy, files = open_policy(), WatchedFiles(0)
    policy.watch(files)

    path.write_text("{")
    files.look()

    assert policy.identify(Credentials(key.token())).known
    assert "is no set of keys" in caplog.text


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "[]",
            "{}",
            '{"keys": []}',
            '{"keys": [{"kty": "RSA"}]}',
            '{"keys": [{"kty": "oct"}]}',
        ),
        pytest.param("[" * 100_000, id="deep"),
    ],
)
def test_a_file_that_is_no_set_of_keys_is_refused(path, text):
    path.write_text(text)
    with pytest.raises(CoreError, match="is no set of keys") as caught:
        AccessPolicy(options(path))
    assert caught.value.kind is Kind.INVALID


@pytest.mark.parametrize("missing", ["issuer", "audience"])
def test_keys_without_an_issuer_or_an_audience_are_refused(path, missing):
    with pytest.raises(CoreError, match=f"--auth-jwks needs --auth-jwt-{missing}"):
        AccessPolicy(options(path, **{f"auth_jwt_{missing}": ""}))


def test_an_algorithm_that_is_none_is_refused(path):
    with pytest.raises(CoreError, match="there is no algorithm 'none'"):
        AccessPolicy(options(path, auth_jwt_algorithms=("none",)))


def test_an_api_key_may_be_a_token_of_the_issuer_too(open_policy, key):
    token = key.token(roles=["read"])
    assert open_policy().identify(Credentials.of([], [token])).roles == {"read"}


def test_without_pyjwt_the_start_fails_with_the_package_to_install(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jwt", None)
    monkeypatch.delitem(sys.modules, "frontends.shared.access.jwt", raising=False)

    with pytest.raises(
        CoreError, match=r"--auth-jwks needs PyJWT .*pip install 'pyjwt\[crypto\]'"
    ) as error:
        AccessPolicy(options(path))
    assert error.value.kind is Kind.UNAVAILABLE
