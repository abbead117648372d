"""Numbers of callers: who gets one, by token, header or address."""

from types import SimpleNamespace

import pytest

from frontends.shared.access import caller_names
from frontends.shared.access.caller_names import ANONYMOUS, FORGOTTEN, CallerNames


class Call:
    def __init__(self, address="10.0.0.1", certificate="", **headers):
        self.address, self.certificate, self._headers = address, certificate, headers

    def values(self, name):
        return self._headers.get(name.replace("-", "_"), [])


def known(name):
    return SimpleNamespace(known=True, name=name)


UNKNOWN = SimpleNamespace(known=False, name="10.0.0.1")


def name_of(names, caller, call):
    return names.name(names.number_of(caller, call))


def test_without_a_plugin_that_asks_nobody_is_numbered():
    assert CallerNames().wanted is False


def test_a_token_names_its_caller_whatever_else_the_call_has():
    names = CallerNames()
    names.identify("X-User", addresses=True)

    assert name_of(names, known("alice"), Call(x_user=["bob"])) == "alice"


def test_a_certificate_names_its_caller_if_no_token_does():
    names = CallerNames()
    names.identify("X-User", addresses=True)
    call = Call(certificate="bob", x_user=["carol"])

    assert name_of(names, None, call) == name_of(names, UNKNOWN, call) == "bob"
    assert name_of(names, known("alice"), call) == "alice"


def test_a_header_names_a_caller_without_a_token():
    names = CallerNames()
    names.identify("X-User", addresses=True)

    assert name_of(names, UNKNOWN, Call(x_user=[" bob "])) == "bob"
    assert name_of(names, None, Call(x_user=["b" * 1000])) == "b" * 128
    assert name_of(names, None, Call(x_user=[""])) == "10.0.0.1"


@pytest.mark.parametrize(
    ("address", "name"), [("10.0.0.1", "10.0.0.1"), ("2001:db8::7", "2001:db8::/64")]
)
def test_addresses_name_the_others_if_they_should(address, name):
    names = CallerNames()
    names.identify(addresses=True)

    assert name_of(names, None, Call(address)) == name


def test_else_they_are_one_caller():
    names = CallerNames()
    names.identify()

    numbers = {names.number_of(None, Call(f"10.0.0.{i}")) for i in range(5)}

    assert [names.name(each) for each in numbers] == [ANONYMOUS]


def test_a_caller_keeps_its_number_and_no_number_is_used_twice(monkeypatch):
    monkeypatch.setattr(caller_names, "_MOST_NAMES", 3)
    names = CallerNames()
    alice = names.number("alice")
    numbers = [alice, *(names.number(f"caller{i}") for i in range(2))]

    assert names.number("alice") == alice
    numbers += [names.number(f"caller{i}") for i in range(2, 4)]

    assert names.name(alice) == "alice"  # it was seen lately
    assert names.name(numbers[1]) == FORGOTTEN
    assert len(set(numbers)) == 5 and 0 not in numbers
    assert names.number("caller0") not in numbers


def test_the_text_of_a_caller_names_the_same_one():
    names = CallerNames()
    names.identify()

    assert names.number_of_text("caller 'it's me'") == names.number_of(known("it's me"), Call())
    assert names.number_of_text("address '10.0.0.1'") == names.number_of(None, Call())
    assert names.name(names.number_of_text("")) == ANONYMOUS
    names.identify(addresses=True)
    assert names.number_of_text("address '10.0.0.1'") == names.number_of(None, Call())
