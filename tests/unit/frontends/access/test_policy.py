"""The admission of calls."""

import asyncio
import os

import pytest

from core.errors import CoreError, Exhausted, Kind
from frontends.shared.access import CATEGORIES, AccessPolicy, Credentials, requirement
from frontends.shared.access.limits import Limits
from frontends.shared.access.tokens import line_of
from frontends.shared.access.unauthenticated import Unauthenticated
from frontends.shared.options import SharedOptions
from frontends.shared.watched_files import WatchedFiles

ROLES = ("infer", "read", "manage")


class Clock:
    s = 1000.0

    def __call__(self):
        return self.s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def path(tmp_path):
    """A file with a token for each role, which is its role's name."""
    found = tmp_path / "tokens"
    found.write_text("\n".join(line_of(f"who-{role}", [role], role) for role in ROLES))
    return found


@pytest.fixture
def policy(path, clock):
    return AccessPolicy(SharedOptions(auth_tokens=str(path)), clock=clock, now=clock)


def may(policy, secret, category, changes=False):
    try:
        policy.authorize(Credentials(secret, "1.2.3.4"), requirement(category, changes=changes))
    except CoreError as error:
        return error.kind
    return None


def test_without_tokens_and_limits_there_is_no_gate():
    assert AccessPolicy.of(SharedOptions()) is None


# (category, changes): permissions of each role, which other callers do not have
MAY = {
    ("health", False): {"infer", "read", "manage"},
    ("health", True): {"infer", "read", "manage"},
    ("metadata", False): {"infer", "read", "manage"},
    ("metadata", True): {"infer", "read", "manage"},
    ("model-config", False): {"infer", "read", "manage"},
    ("model-config", True): {"infer", "read", "manage"},
    ("inference", False): {"infer"},
    ("inference", True): {"infer"},
    ("shared-memory", False): {"infer", "read", "manage"},
    ("shared-memory", True): {"infer"},
    ("statistics", False): {"read", "manage"},
    ("statistics", True): {"read", "manage"},
    ("metrics", False): {"read", "manage"},
    ("metrics", True): {"read", "manage"},
    ("model-repository", False): {"read", "manage"},
    ("model-repository", True): {"manage"},
    ("trace", False): {"read", "manage"},
    ("trace", True): {"manage"},
    ("logging", False): {"read", "manage"},
    ("logging", True): {"manage"},
}


def test_the_table_of_roles_has_every_category():
    assert {category for category, _ in MAY} == set(CATEGORIES)


@pytest.mark.parametrize("category,changes", MAY)
@pytest.mark.parametrize("role", ROLES)
def test_a_role_has_the_permissions_of_the_table(policy, category, changes, role):
    expected = role in MAY[category, changes] or category == "health"
    assert may(policy, role, category, changes) is (None if expected else Kind.FORBIDDEN)


@pytest.mark.parametrize("category", CATEGORIES)
def test_an_anonymous_caller_may_only_check_health(policy, category):
    assert may(policy, "", category) is (None if category == "health" else Kind.UNAUTHENTICATED)


def test_health_can_be_closed_and_others_opened(path):
    policy = AccessPolicy(SharedOptions(auth_tokens=str(path), auth_open=("inference",)))

    assert may(policy, "", "health") is Kind.UNAUTHENTICATED
    assert not policy.is_exempt(requirement("health", changes=False))
    assert may(policy, "", "inference") is None
    assert may(policy, "wrong", "inference") is Kind.UNAUTHENTICATED


def test_an_unknown_category_is_refused():
    with pytest.raises(KeyError):
        requirement("secrets", changes=False)


def test_a_refusal_names_caller_and_role_and_no_secret(policy):
    with pytest.raises(CoreError) as caught:
        policy.authorize(Credentials("infer", ""), requirement("model-repository", changes=True))
    assert caught.value.message == "this API needs the role manage; caller 'who-infer' has infer"

    with pytest.raises(Unauthenticated) as caught:
        policy.authorize(Credentials("hush", ""), requirement("metadata", changes=False))
    assert (caught.value.message, caught.value.shown) == ("the token is not known", True)


def test_a_secret_is_in_no_text_of_its_objects(policy):
    shown = Credentials("hush", "1.2.3.4")
    assert "hush" not in repr(shown) + str(shown)


def test_a_verified_caller_is_verified_again_after_some_time(policy, clock, monkeypatch):
    first = policy.identify(Credentials("infer"))
    assert policy.identify(Credentials("infer")) is first

    clock.s += 301
    assert not first.is_valid()
    assert policy.identify(Credentials("infer")) is not first


async def test_a_changed_file_takes_tokens_away_and_brings_others(policy, path):
    files = WatchedFiles(0)
    policy.watch(files)
    before = policy.identify(Credentials("infer"))

    path.write_text(line_of("new", ["infer"], "another"))
    files.look()

    assert not before.is_valid()
    assert may(policy, "infer", "inference") is Kind.UNAUTHENTICATED
    assert may(policy, "another", "inference") is None


async def test_a_request_within_a_call_is_of_a_caller_that_still_may(policy, path, clock):
    """The call continues; later requests in it have the current roles."""
    active_calls = []
    for secret in ("infer", "manage"):
        shown, wanted = Credentials(secret), requirement("inference", changes=True)
        active_calls.append(policy.identify(shown).begin_call())
        active_calls[-1].renew_with(
            lambda shown=shown, wanted=wanted: policy.authorize(shown, wanted)
        )
    files = WatchedFiles(0)
    policy.watch(files)
    for active in active_calls:
        active.count_request()

    path.write_text(line_of("now", ["infer"], "manage"))
    files.look()

    with pytest.raises(Unauthenticated):
        active_calls[0].count_request(counts=False)
    active_calls[1].count_request()
    assert active_calls[1].caller.name == "now"


async def test_a_broken_file_has_no_effect_and_is_logged(policy, path, caplog):
    files = WatchedFiles(0)
    policy.watch(files)

    path.write_text("nonsense")
    files.look()

    assert may(policy, "infer", "inference") is None
    assert f"--auth-tokens: {path}:1: expected <name>" in caplog.text
    assert "what was read before stays in use" in caplog.text


async def test_an_unexpected_error_of_one_file_does_not_stop_the_watch_of_others(path, caplog):
    files, renewed = WatchedFiles(0.01), asyncio.Event()

    def fail():
        raise KeyError("unexpected")

    files.add("this", [str(path)], fail)
    files.add("that", [str(path)], renewed.set)
    for times in ((1, 1), (2, 2)):  # the second time shows that the timer continues
        os.utime(path, times)
        await asyncio.wait_for(renewed.wait(), 10)
        renewed.clear()
    files.close()

    assert "this cannot be read; what was read before stays in use" in caplog.text


async def test_files_are_checked_at_intervals(path):
    """Use the loop's timer with a short interval; an event reports a check."""
    files, renewed = WatchedFiles(0.01), asyncio.Event()
    files.add("it", [str(path)], renewed.set)
    path.write_text("other")
    os.utime(path, (1, 1))

    await asyncio.wait_for(renewed.wait(), 10)
    files.close()


async def test_unchanged_files_are_read_again_only_on_request(path):
    files, count = WatchedFiles(0), []
    files.add("it", [str(path)], lambda: count.append(1))

    files.look()
    assert count == []
    files.look(anyway=True)
    assert count == [1]


async def test_the_target_of_a_link_is_watched(tmp_path):
    """As Kubernetes changes mounted secrets."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    (tmp_path / "now").symlink_to("one")
    files, count = WatchedFiles(0), []
    files.add("it", [str(tmp_path / "now" / "file")], lambda: count.append(1))

    (tmp_path / "later").symlink_to("two")
    (tmp_path / "later").rename(tmp_path / "now")
    files.look()

    assert count == [1]


def test_a_caller_has_its_own_limits_or_those_of_all(tmp_path, clock):
    path = tmp_path / "tokens"
    path.write_text(
        line_of("a", ["infer"], "a", Limits(rate=3)) + "\n" + line_of("b", ["infer"], "b")
    )
    policy = AccessPolicy(
        SharedOptions(auth_tokens=str(path), limit_rate=1.0), clock=clock, now=clock
    )

    def entered(secret):
        caller = policy.identify(Credentials(secret))
        for count in range(10):
            try:
                caller.begin_call().end()
            except Exhausted:
                return count

    assert (entered("a"), entered("b")) == (3, 1)


def test_without_tokens_callers_are_known_by_their_addresses(clock):
    policy = AccessPolicy(SharedOptions(limit_concurrency=1), clock=clock, now=clock)
    wanted = requirement("model-repository", changes=True)

    active = policy.authorize(Credentials("whatever", "10.0.0.1"), wanted).begin_call()

    with pytest.raises(Exhausted, match=r"address '10\.0\.0\.1' has 1 requests in flight"):
        policy.authorize(Credentials("", "10.0.0.1"), wanted).begin_call()
    policy.authorize(Credentials("", "10.0.0.2"), wanted).begin_call()
    active.end()
    active.end()
    policy.authorize(Credentials("", "10.0.0.1"), wanted).begin_call()


@pytest.mark.parametrize(
    "first,second,same",
    [
        ("10.0.0.1", "10.0.0.2", False),
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.2", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("::1", "::2", False),
        ("unix", "", False),
    ],
)
def test_an_address_of_ipv6_is_known_by_its_network(clock, first, second, same):
    """The owner of one address has 2^64 of them."""
    policy = AccessPolicy(SharedOptions(limit_concurrency=1), clock=clock, now=clock)
    policy.identify(Credentials("", first)).begin_call()

    try:
        policy.identify(Credentials("", second)).begin_call()
    except Exhausted:
        assert same
    else:
        assert not same


@pytest.mark.parametrize(
    "authorizations,keys,reason",
    [
        (["Basic dTpw"], [], "it is of another scheme"),
        (["Bearer"], [], "the one shown has 0"),
        (["Bearer a"], ["b"], "2 credentials were shown"),
        (["Bearer a", "Bearer a"], [], "2 credentials were shown"),
        ([], [""], "the one shown has 0"),
        ([], ["x" * 20_000], "the one shown has 20000"),
    ],
)
def test_credentials_in_another_form_are_refused(authorizations, keys, reason):
    with pytest.raises(Unauthenticated, match=reason) as caught:
        Credentials.of(authorizations, keys)
    assert "dTpw" not in caught.value.message


@pytest.mark.parametrize("text", ["Bearer s", "bearer  s", "BEARER s "])
def test_a_bearer_token_is_one_in_any_case(text):
    assert Credentials.of([text], []).secret == "s"
    assert Credentials.of([], ["s"]).secret == "s"
    assert Credentials.of([], []).secret == ""
