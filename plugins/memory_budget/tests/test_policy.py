"""Which models go: pure functions against oracles."""

import itertools

from core_memory_budget.policy import Candidate, Level, value_of, victims
from hypothesis import given
from hypothesis import strategies as st

MIB = 1 << 20


def candidate(key, size=10, used=0.0, load_s=1.0, **more):
    return Candidate(key, {"host": size * MIB}, used, load_s, **more)


def keys(found):
    return [each.key for each in found]


def test_with_equal_costs_the_one_used_longest_ago_goes_first():
    found = [candidate("new", used=3), candidate("old", used=1), candidate("middle", used=2)]

    assert keys(victims({"host": 15 * MIB}, found, Level())) == ["old", "middle"]


def test_one_that_takes_long_to_load_stays_longer():
    cheap, costly = candidate("cheap", used=2, load_s=0.1), candidate("costly", used=1, load_s=10)

    assert keys(victims({"host": MIB}, [costly, cheap], Level())) == ["cheap"]


def test_load_times_that_differ_by_chance_do_not_decide():
    first, second = candidate("first", used=1, load_s=1.2), candidate("second", used=2, load_s=1)

    assert keys(victims({"host": MIB}, [second, first], Level())) == ["first"]


def test_even_a_costly_one_goes_at_last_if_it_is_not_used():
    level, costly = Level(), candidate("costly", used=0, load_s=10)
    for second in range(1, 1000):
        fresh = candidate(f"m{second}", used=second, load_s=0.1)
        (gone,) = victims({"host": MIB}, [costly, fresh], level)
        if gone is costly:
            break
        level.rise(second, value_of(gone, level))

    assert gone is costly
    assert second > 1


def test_smaller_priority_goes_first_and_a_running_request_keeps_a_model():
    found = [
        candidate("busy", used=0, priority=-1, busy=True),
        candidate("important", used=1, priority=5),
        candidate("plain", used=2),
    ]

    assert keys(victims({"host": 25 * MIB}, found, Level())) == ["plain", "important", "busy"]


def test_a_model_that_frees_nothing_on_the_device_stays():
    found = [candidate("host"), Candidate("gpu", {"gpu0": MIB}, 5, 1)]

    assert keys(victims({"gpu0": 1}, found, Level())) == ["gpu"]
    assert victims({"gpu1": 1}, found, Level()) is None


def test_none_is_superfluous_after_a_large_one():
    found = [candidate("small", 1, used=1), candidate("large", 100, used=2)]

    assert keys(victims({"host": 50 * MIB}, found, Level())) == ["large"]


sizes = st.dictionaries(st.sampled_from(["host", "gpu0"]), st.integers(1, 50), min_size=1)
models = st.lists(
    st.builds(
        Candidate,
        st.uuids().map(str),
        sizes,
        st.floats(0, 100),
        st.floats(0, 10),
        st.integers(-2, 2),
        st.booleans(),
    ),
    max_size=6,
)


def frees(chosen, missing):
    return all(
        sum(each.bytes.get(device, 0) for each in chosen) >= size
        for device, size in missing.items()
    )


@given(sizes, models)
def test_the_victims_suffice_none_is_superfluous_and_none_means_that_nothing_does(missing, found):
    chosen = victims(missing, found, Level())

    if chosen is None:
        assert not frees(found, missing)
        return
    assert frees(chosen, missing)
    for each in chosen:
        assert not frees([other for other in chosen if other is not each], missing)


@given(sizes, models)
def test_no_busy_model_goes_if_the_others_suffice(missing, found):
    idle = [each for each in found if not each.busy]
    if frees(idle, missing):
        assert not any(each.busy for each in victims(missing, found, Level()))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=200), st.integers(1, 6))
def test_models_of_one_size_and_cost_leave_in_the_order_of_an_lru(trace, room):
    """The oracle is an LRU of `room` places over the same requests."""
    oracle: list[int] = []
    loaded: dict[int, Candidate] = {}
    level = Level()
    for now, model in enumerate(trace, 1):
        if model not in loaded and len(loaded) == room:
            (gone,) = victims({"host": MIB}, list(loaded.values()), level)
            level.rise(now, value_of(gone, level))
            del loaded[int(gone.key)]
        loaded[model] = candidate(str(model), 1, used=now)
        if model in oracle:
            oracle.remove(model)
        oracle = [*oracle, model][-room:]

        assert set(loaded) == set(oracle)


@given(st.lists(st.tuples(st.floats(0, 9), st.floats(0, 9)), max_size=30), st.floats(0, 9))
def test_the_level_is_the_highest_value_so_far_also_after_old_ones_are_forgotten(rises, time):
    rises = sorted(rises)
    level = Level()
    for now, value in rises:
        level.rise(now, value)
    expected = max(itertools.chain([0.0], (value for now, value in rises if now <= time)))

    assert level.at(time) == expected
    level.forget(time)
    assert level.at(time) == expected
