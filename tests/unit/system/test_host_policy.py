"""Host policies: the values of --host-policy, and threads that stay on their cores."""

import os
import threading
from pathlib import Path

import pytest

from core.errors import CoreError, Kind
from core.system import platform
from core.system.host_policy import HostPolicies, HostPolicy
from core.system.platform import PORTABLE

ALLOWED = frozenset(range(8))


@pytest.fixture
def nodes(tmp_path):
    """Two nodes of four cores, and one with memory alone."""
    for number, cores in enumerate(("0-1,4-5\n", "2-3,6,7\n", "\n")):
        (tmp_path / f"node{number}").mkdir()
        (tmp_path / f"node{number}" / "cpulist").write_text(cores)
    return tmp_path


def policy(nodes=Path("nowhere"), /, **settings):
    settings = {key.replace("_", "-"): value for key, value in settings.items()}
    return HostPolicies({"mine": settings}, ALLOWED, nodes).named("mine")


@pytest.mark.parametrize(
    "text,cores", [("0-3", {0, 1, 2, 3}), ("5-5", {5}), ("0-1,6-7", {0, 1, 6, 7})]
)
def test_cores_are_ranges(text, cores):
    assert policy(cpu_cores=text).cores == cores


def test_a_numa_node_means_its_cores(nodes):
    assert policy(nodes, numa_node="0").cores == {0, 1, 4, 5}
    assert policy(nodes, numa_node="1").cores == {2, 3, 6, 7}


def test_cores_go_before_the_numa_node(nodes):
    found = policy(nodes, numa_node="0", cpu_cores="6-7")

    assert found.cores == {6, 7}
    assert found.settings == {"numa-node": "0", "cpu-cores": "6-7"}


def test_an_unknown_policy_binds_no_thread():
    found = HostPolicies({}).named("cpu")

    assert found == HostPolicy("cpu")
    before = os.sched_getaffinity(0)
    found.bind()
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize(
    "settings,text",
    [
        ({"cpu_cores": "abc"}, "format is '<lower_cpu_core_id>-<upper_cpu_core_id>'. Got abc"),
        ({"cpu_cores": "0"}, "format is '<lower_cpu_core_id>-<upper_cpu_core_id>'. Got 0"),
        ({"cpu_cores": "0-1,x"}, "--host-policy=mine,cpu-cores=0-1,x: host policy setting"),
        ({"cpu_cores": "3-1"}, "the first core of 3-1 must not be above the last"),
        ({"cpu_cores": "99-99"}, "none of the cores 99 is there"),
        (
            {"cpu_cores": "90-91"},
            "none of the cores 90-91 is there for this process, it may use 0-7",
        ),
        ({"numa_node": "x"}, "Parsing 'numa-node' value: Can't parse 'x' to integer"),
        ({"numa_node": "-1"}, "--host-policy=mine,numa-node=-1: Parsing 'numa-node' value"),
        ({"numa_node": "7"}, "this machine has no NUMA node 7, it has 0, 1, 2"),
        ({"numa_node": "2"}, "NUMA node 2 has memory, but no cores"),
        ({"color": "red"}, "supported settings are 'numa-node', 'cpu-cores'"),
    ],
)
def test_an_impossible_policy_is_refused(nodes, settings, text):
    with pytest.raises(CoreError) as error:
        policy(nodes, **settings)

    assert error.value.kind is Kind.INVALID
    assert text in error.value.message


def test_a_machine_without_numa_nodes_is_an_error(tmp_path):
    with pytest.raises(CoreError, match="no NUMA node 0, it tells of none"):
        policy(tmp_path, numa_node="0")


def test_cores_that_are_not_there_are_left_out(caplog):
    assert policy(cpu_cores="6-9").cores == {6, 7}
    assert "--host-policy=mine,cpu-cores=6-9: this process may not use the cores 8-9" in caplog.text


@pytest.mark.skipif(PORTABLE, reason="only Linux binds threads to cores")
def test_a_thread_and_those_that_it_starts_run_on_the_cores():
    core = max(os.sched_getaffinity(0))
    seen = []

    def look():
        seen.append(os.sched_getaffinity(0))

    def bound():
        policy = HostPolicies({"cpu": {"cpu-cores": f"{core}-{core}"}}).named("cpu")
        policy.bind()
        look()
        child = threading.Thread(target=look)
        child.start()
        child.join()

    before = os.sched_getaffinity(0)
    thread = threading.Thread(target=bound)
    thread.start()
    thread.join()

    assert seen == [{core}, {core}]
    assert os.sched_getaffinity(0) == before


def test_without_bound_threads_a_policy_is_refused(monkeypatch):
    monkeypatch.setattr(platform, "PORTABLE", True)

    with pytest.raises(CoreError, match="only Linux binds threads to cores; remove the option"):
        HostPolicies({"cpu": {"cpu-cores": "0-0"}})

    assert HostPolicies({"cpu": {}}).named("cpu").cores == frozenset()
