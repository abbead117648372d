"""All metrics of a server as text, read back by the parser of prometheus_client."""

import math
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from core.errors import CoreError
from core.system.platform import PORTABLE
from core.telemetry.registry import registry
from frontends.pages import metrics_page

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def parsed(exposition):
    return {family.name: family for family in text_string_to_metric_families(exposition)}


@pytest.mark.skipif(PORTABLE, reason="metrics of the machine are of /proc")
def test_all_families_of_the_catalog_are_exposed_and_no_others(families, catalog):
    told = {each.name for each in families if each.samples}

    assert told == set(catalog)


@pytest.mark.skipif(PORTABLE, reason="metrics of the machine are of /proc")
def test_every_family_has_its_kind_and_help(parsed, catalog):
    # The parser leaves out the end of the names of counters.
    assert {name: (each.type, each.documentation) for name, each in parsed.items()} == {
        entry.name.removesuffix("_total"): (entry.kind, entry.help) for entry in catalog.values()
    }


@pytest.mark.skipif(PORTABLE, reason="metrics of the machine are of /proc")
def test_families_of_triton_have_its_names_kinds_and_help(exposition):
    wanted = (Path(__file__).parent / "triton.txt").read_text().splitlines()

    assert set(wanted) - set(exposition.splitlines()) == set()


def test_every_sample_has_the_labels_of_the_catalog(families, catalog):
    for family in families:
        entry = catalog[family.name]
        for sample in family.samples:
            labels = set(sample.labels) - ({"le", "quantile", "_team"} - set(entry.labels))
            own = family.name.startswith(("core_process", "core_event_loop"))
            assert labels - ({"worker"} if own else set()) == set(entry.labels), family.name


def test_no_series_is_exposed_twice(exposition):
    series = Counter(
        line.rpartition(" ")[0] for line in exposition.splitlines() if not line.startswith("#")
    )

    assert [name for name, count in series.items() if count > 1] == []


def test_a_family_stands_in_one_place(exposition):
    heads = [line.split()[2] for line in exposition.splitlines() if line.startswith("# TYPE")]

    assert len(heads) == len(set(heads))


def test_buckets_of_a_histogram_rise_to_its_count(parsed):
    for family in parsed.values():
        if family.type != "histogram":
            continue
        buckets, counts = defaultdict(list), {}
        for sample in family.samples:
            labels = dict(sample.labels)
            if sample.name.endswith("_bucket"):
                bound = float(labels.pop("le"))
                buckets[tuple(sorted(labels.items()))].append((bound, sample.value))
            elif sample.name.endswith("_count"):
                counts[tuple(sorted(labels.items()))] = sample.value
        assert set(buckets) == set(counts)
        for labels, rows in buckets.items():
            assert rows == sorted(rows)
            assert [count for _, count in rows] == sorted(count for _, count in rows)
            assert rows[-1] == (math.inf, counts[labels])


def test_le_and_quantile_are_the_last_labels(exposition):
    assert (
        'nv_inference_queue_summary_us{_team="a b",model="double",version="1",quantile="0.5"}'
        in exposition
    )
    assert 'ion_histogram_us_bucket{model="stream",version="1",le="1000"} 0' in exposition


def test_the_page_of_metrics_has_the_catalog(catalog):
    text = (ROOT / "docs" / "operate" / "metrics.md").read_text()

    assert metrics_page(text) == text, "run `make docs`"
    assert all(f"| `{name}` |" in text for name in catalog)


@pytest.mark.parametrize("name", ["nv_own", "core_workers", "core_process_threads"])
def test_a_model_cannot_take_a_name_of_the_server(name):
    with pytest.raises(CoreError, match=f"'{name}' cannot be the name"):
        registry.family(name, "Own", "counter")
