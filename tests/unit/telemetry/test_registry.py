"""Custom metrics of models."""

import threading

import pytest

from core.errors import CoreError, Kind
from core.telemetry.families import Sample
from core.telemetry.registry import Registry


@pytest.fixture
def registry():
    return Registry()


def samples(registry, index=0):
    return registry.families()[index].samples


def test_a_counter_grows(registry):
    metric = registry.family("items", "Items", "counter").metric({"kind": "a"})

    metric.increment(1)
    metric.increment(0.5)

    assert metric.value() == 1.5
    assert samples(registry) == [Sample({"kind": "a"}, 1.5)]


@pytest.mark.parametrize("value", [-1, float("nan")])
def test_a_counter_cannot_fall(registry, value):
    metric = registry.family("items", "Items", "counter").metric()

    with pytest.raises(CoreError, match=r"^counter can only be incremented") as error:
        metric.increment(value)

    assert error.value.kind is Kind.INVALID
    assert metric.value() == 0


def test_a_gauge_goes_up_and_down(registry):
    metric = registry.family("level", "Level", "gauge").metric()

    metric.set(5)
    metric.increment(-2)

    assert metric.value() == 3


def test_a_histogram_counts_into_cumulative_buckets(registry):
    metric = registry.family("size", "Size", "histogram").metric({"a": "b"}, [1, 2.5])

    for value in (0.5, 1, 2, 99):
        metric.observe(value)

    assert samples(registry) == [
        Sample({"a": "b", "le": "1"}, 2, "_bucket"),
        Sample({"a": "b", "le": "2.5"}, 3, "_bucket"),
        Sample({"a": "b", "le": "+Inf"}, 4, "_bucket"),
        Sample({"a": "b"}, 102.5, "_sum"),
        Sample({"a": "b"}, 4, "_count"),
    ]


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        ("counter", "set"),
        ("counter", "observe"),
        ("gauge", "observe"),
        ("histogram", "set"),
        ("histogram", "increment"),
    ],
)
def test_a_metric_refuses_operations_of_other_kinds(registry, kind, method):
    metric = registry.family("x", "X", kind).metric({}, [1] if kind == "histogram" else None)

    with pytest.raises(CoreError, match=f"{kind} metrics do not support '{method}'"):
        getattr(metric, method)(1)


def test_equal_labels_are_one_metric(registry):
    family = registry.family("items", "Items", "counter")
    first, second = family.metric({"a": "1", "b": "2"}), family.metric({"b": "2", "a": "1"})

    first.increment(1)

    assert second.value() == 1
    assert family.metric({"a": "2"}).value() == 0


def test_a_metric_is_removed_when_all_users_have_released_it(registry):
    family = registry.family("items", "Items", "counter")
    first, second = family.metric(), family.metric()

    family.remove(first)
    assert len(samples(registry)) == 1
    family.remove(second)
    assert samples(registry) == []


def test_a_family_is_removed_when_all_users_have_released_it(registry):
    first = registry.family("items", "Items", "counter")
    second = registry.family("items", "Items", "counter")
    assert first is second

    registry.remove(first)
    assert len(registry.families()) == 1
    registry.remove(second)
    assert registry.families() == []
    assert registry.family("items", "Other", "gauge").kind == "gauge"


def test_a_family_cannot_be_two_things(registry):
    registry.family("items", "Items", "counter")

    for text, kind in (("Other", "counter"), ("Items", "gauge")):
        with pytest.raises(CoreError, match="'items' is there already, as counter"):
            registry.family("items", text, kind)


@pytest.mark.parametrize("name", ["", "1a", "a-b", "a b", "nv_inference_count", "ä"])
def test_a_family_needs_a_name_that_is_free(registry, name):
    with pytest.raises(CoreError, match="cannot be the name"):
        registry.family(name, "X", "counter")


@pytest.mark.parametrize("label", ["", "1a", "a-b", "__a"])
def test_labels_need_names(registry, label):
    with pytest.raises(CoreError, match="no name of a label"):
        registry.family("items", "X", "counter").metric({label: "x"})


@pytest.mark.parametrize(
    ("kind", "buckets", "text"),
    [
        ("histogram", None, "needs buckets"),
        ("histogram", [2, 1], "not ascending"),
        ("histogram", [1, 1], "not ascending"),
        ("counter", [1], "takes no buckets"),
    ],
)
def test_buckets_are_for_histograms_and_ascend(registry, kind, buckets, text):
    with pytest.raises(CoreError, match=text):
        registry.family("items", "X", kind).metric({}, buckets)


def test_threads_do_not_lose_increments(registry):
    metric = registry.family("items", "Items", "counter").metric()
    threads = [
        threading.Thread(target=lambda: [metric.increment(1) for _ in range(5000)])
        for _ in range(4)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert metric.value() == 20_000


@pytest.mark.parametrize("mode", ["all", "liveall", "MAX", "latest"])
def test_an_unknown_mode_is_refused_with_those_that_there_are(registry, mode):
    with pytest.raises(CoreError) as error:
        registry.family("level", "Level", "gauge", mode)

    assert error.value.kind is Kind.INVALID
    assert error.value.message == (
        f"metric family 'level': multiprocess_mode is '{mode}', expected one of sum, max, min, mostrecent"
    )


@pytest.mark.parametrize("kind", ["counter", "histogram"])
def test_only_gauges_have_a_mode(registry, kind):
    with pytest.raises(CoreError, match=f"only a gauge can have; the values of a {kind} are added"):
        registry.family("level", "Level", kind, "max")


def test_a_family_has_one_mode(registry):
    registry.family("level", "Level", "gauge", "max")

    registry.family("level", "Level", "gauge", "max")
    with pytest.raises(CoreError, match="there already, with multiprocess_mode 'max', found ''"):
        registry.family("level", "Level", "gauge")
