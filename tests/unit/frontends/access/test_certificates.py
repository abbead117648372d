"""The name in a client certificate, and what callers with one may."""

from hashlib import blake2b

import pytest

from core.errors import CoreError
from frontends.shared.access import AccessPolicy, Credentials, requirement
from frontends.shared.access.certificates import certificate_name
from frontends.shared.access.tokens import line_of
from frontends.shared.access.unauthenticated import Unauthenticated
from frontends.shared.options import SharedOptions

INFERENCE = requirement("inference", changes=True)


def subject(**fields):
    return {"subject": tuple(((name, text),) for name, text in fields.items())}


@pytest.mark.parametrize(
    ("certificate", "name"),
    [
        (None, ""),
        ({}, ""),
        (subject(organizationName="acme", commonName="alice"), "alice"),
        (subject(commonName=" "), ""),
        ({"subjectAltName": (("DNS", "a.example"), ("DNS", "b.example"))}, "a.example"),
        (
            {"subjectAltName": (("DNS", "a.example"), ("URI", "spiffe://acme/training"))},
            "spiffe://acme/training",
        ),
        ({**subject(commonName="alice"), "subjectAltName": (("DNS", "a.example"),)}, "alice"),
        ({"subjectAltName": (("IP Address", "10.0.0.7"),)}, ""),
        (subject(commonName="a\nb\x1b[0m"), "a?b?[0m"),
        (subject(commonName="x" * 128), "x" * 128),
        (
            subject(commonName="x" * 200),
            "x" * 111 + "~" + blake2b(b"x" * 200, digest_size=8).hexdigest(),
        ),
    ],
)
def test_the_name_is_the_common_name_or_an_alternative(certificate, name):
    assert certificate_name(certificate) == name


def test_long_names_that_differ_late_are_different_callers():
    long = "spiffe://acme/" + "x" * 200
    names = {certificate_name(subject(commonName=long + end)) for end in ("", "a", "b", "\u00e4")}

    assert len(names) == 4
    assert {len(name) for name in names} == {128}


def test_a_certificate_has_the_limits_of_the_options():
    policy = AccessPolicy.of(SharedOptions(limit_concurrency=1))

    alice = policy.authorize(Credentials("", "10.0.0.7", "alice"), INFERENCE)
    running = alice.begin_call()

    with pytest.raises(CoreError, match="caller 'alice' has 1 requests in flight, its limit is 1"):
        policy.authorize(Credentials("", "10.0.0.8", "alice"), INFERENCE).begin_call()
    policy.authorize(Credentials("", "10.0.0.7", "bob"), INFERENCE).begin_call().end()
    policy.authorize(Credentials("", "10.0.0.7"), INFERENCE).begin_call().end()
    running.end()
    alice.begin_call().end()


def test_a_certificate_is_no_token(tmp_path):
    file = tmp_path / "tokens"
    file.write_text(line_of("alice", ["infer"], "secret"))
    options = SharedOptions(auth_tokens=str(file), auth_open=("metadata",))
    policy = AccessPolicy.of(options)

    with pytest.raises(Unauthenticated, match="this API needs a token"):
        policy.authorize(Credentials("", "10.0.0.7", "bob"), INFERENCE)
    looks = policy.authorize(
        Credentials("", "10.0.0.7", "bob"), requirement("metadata", changes=False)
    )
    assert (looks.text, looks.has_token) == ("caller 'bob'", False)
    both = policy.authorize(Credentials("secret", "10.0.0.7", "bob"), INFERENCE)
    assert (both.text, both.has_token) == ("caller 'alice'", True)


def test_work_that_outlives_a_call_has_the_allowance_of_its_caller(tmp_path):
    file = tmp_path / "tokens"
    file.write_text(line_of("own", ["infer"], "secret") + " concurrent=1")
    options = SharedOptions(auth_tokens=str(file), limit_concurrency=2)
    policy = AccessPolicy.of(options)

    def most(text):
        allowance = policy.allowance_of(text)
        slots = []
        with pytest.raises(CoreError):
            while True:
                slots.append(allowance.enter())
        for each in slots:
            allowance.leave(each)
        return len(slots)

    assert most("caller 'own'") == 1
    assert most("caller 'a token that has gone'") == 2
    assert most("address '10.0.0.7'") == 2
    assert policy.allowance_of("") is None
    call = policy.authorize(Credentials("secret"), INFERENCE).begin_call()
    with pytest.raises(CoreError, match="caller 'own' has 1 requests in flight"):
        policy.allowance_of("caller 'own'").enter()
    call.end()
