"""The text of metrics, read back with prometheus_client."""

import math
import pickle

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from core.telemetry.families import Family, Sample
from core.telemetry.labels import Labels
from frontends.metrics.text import render


def test_a_counter_keeps_its_name_and_integers_have_no_point():
    family = Family(
        "nv_x", "counter", "Help", [Sample({"version": "1", "_a": "b", "model": "m"}, 3)]
    )

    assert render([family]) == (
        '# HELP nv_x Help\n# TYPE nv_x counter\nnv_x{_a="b",model="m",version="1"} 3\n'
    )


def test_a_family_without_samples_is_left_out():
    assert render([Family("nv_x", "gauge", "Help")]) == ""


def test_a_sample_without_labels_has_no_braces():
    assert render([Family("a", "gauge", "", [Sample({}, 268435456)])]).endswith("a 268435456\n")


TEXTS = st.text(
    st.characters(
        exclude_categories=["Cs"], exclude_characters="\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
    )
)


@given(
    st.dictionaries(st.sampled_from(["a", "_b", "c1"]), TEXTS),
    st.floats() | st.integers(-(2**60), 2**60),
)
def test_written_entries_are_read_back(labels, value):
    text = render([Family("own", "gauge", "Help with \\ and\nlines", [Sample(labels, value)])])

    ((family,), (sample,)) = (
        found := list(text_string_to_metric_families(text)),
        found[0].samples,
    )
    assert family.documentation == "Help with \\ and\nlines"
    assert sample.labels == labels
    assert sample.value == value or (math.isnan(sample.value) and math.isnan(value))


def test_a_histogram_is_read_as_one():
    samples = [
        Sample({"le": "1"}, 1, "_bucket"),
        Sample({"le": "+Inf"}, 2, "_bucket"),
        Sample({}, 5.5, "_sum"),
        Sample({}, 2, "_count"),
    ]

    (family,) = text_string_to_metric_families(render([Family("h", "histogram", "H", samples)]))

    assert family.type == "histogram"
    assert [(each.name, each.value) for each in family.samples] == [
        ("h_bucket", 1),
        ("h_bucket", 2),
        ("h_sum", 5.5),
        ("h_count", 2),
    ]


def test_repeated_labels_are_written_the_same():
    labels = Labels({"model": "m"})
    bucket = labels.plus("le", "1")
    families = [Family("a", "histogram", "", [Sample(bucket, 1, "_bucket"), Sample(labels, 1)])]

    first = render(families)

    assert labels.plus("le", "1") is bucket
    assert 'a_bucket{model="m",le="1"} 1\na{model="m"} 1\n' in first
    assert render(families) == first


def test_labels_that_may_be_changed_are_read_each_time():
    labels = {"model": "m"}
    family = Family("a", "gauge", "", [Sample(labels, 1)])
    render([family])

    labels["model"] = "n"

    assert 'a{model="n"} 1' in render([family])


def test_labels_reach_other_processes_as_a_plain_dict():
    assert type(pickle.loads(pickle.dumps(Labels({"a": "b"})))) is dict
