"""What a worker that comes later has to catch up."""

from core_workers.ledger import Entry, Ledger


def kept(*things):
    ledger = Ledger()
    for i, thing in enumerate(things):
        ledger.keep(thing, Entry(thing, str(i).encode()))
    return ledger


def told(ledger):
    return [(entry.method, entry.body) for entry in ledger.entries()]


def test_the_last_change_of_a_thing_counts():
    assert told(kept("model a", "model b", "model a")) == [("model b", b"1"), ("model a", b"2")]


def test_models_come_first_since_settings_may_be_theirs():
    assert told(kept("trace trace_rate a", "model a")) == [
        ("model a", b"1"),
        ("trace trace_rate a", b"0"),
    ]


def test_what_is_dropped_is_not_told():
    ledger = kept("memory a", "memory a b")

    ledger.drop("memory a")

    assert told(ledger) == [("memory a b", b"1")]


def test_a_whole_area_can_be_dropped():
    ledger = kept("memory a", "memory b", "model memory")

    ledger.drop("memory")

    assert told(ledger) == [("model memory", b"2")]
