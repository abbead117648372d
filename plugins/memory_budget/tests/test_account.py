"""What the account knows of a loaded version, what statistics show of it, and what its next load needs."""

from types import SimpleNamespace

import pytest
from core_memory_budget.account import Account, Entry, found_out, shown, usage
from core_memory_budget.measuring import Measured
from core_memory_budget.options import ModelMemory

from core import config as configuration


def test_the_backend_takes_precedence_over_the_measurement_and_that_over_the_estimate():
    need = SimpleNamespace(kept={"host": 1, "gpu0": 9})
    both = {"host", "gpu0"}

    assert found_out(need, Measured({"host": 2}, exact=True, known=both), {"host": 3}) == (
        {"host": 3},
        "backend",
        True,
        both,
    )
    measured = found_out(need, Measured({"host": 2}, exact=True, known=both), {})
    assert measured == ({"host": 2}, "measured", True, both)
    assert found_out(need, Measured({"host": 2}), {}) == (need.kept, "estimate", False, frozenset())
    of_process = found_out(need, Measured({"host": 7}, processes=5), {})
    assert of_process == ({"host": 5, "gpu0": 9}, "measured", False, {"host"})


def test_a_gpu_without_a_measurement_keeps_its_estimate_and_the_host_its_measurement():
    need = SimpleNamespace(kept={"host": 1, "gpu0": 9})
    measured = Measured({"host": 2}, exact=True, known={"host"})

    assert found_out(need, measured, {}) == ({"host": 2, "gpu0": 9}, "measured", False, {"host"})


def test_what_is_not_known_of_a_gpu_is_no_exact_figure_also_without_an_estimate():
    need = SimpleNamespace(kept={"host": 1})
    measured = Measured({"host": 2}, exact=True, known={"host"}, unknown={"gpu0"})

    assert found_out(need, measured, {}) == ({"host": 2}, "measured", False, {"host"})


def version_of(folder, config):
    return SimpleNamespace(
        key="m",
        version=1,
        path=folder,
        config=configuration.parse_text(config, "test"),
        source=SimpleNamespace(versions={1: "stamp"}, shared="s"),
    )


def test_the_first_load_on_gpus_needs_one_copy_of_the_files_on_each_and_at_most_one_per_instance(
    tmp_path,
):
    (tmp_path / "weights").write_bytes(bytes(1000))
    version = version_of(
        tmp_path,
        "instance_group [ { kind: KIND_GPU count: 2 gpus: [ 0, 1 ] }, "
        "{ kind: KIND_GPU count: 1 gpus: [ 1 ] }, { kind: KIND_CPU count: 5 } ]",
    )

    need = Account().need(version, ModelMemory())

    assert need.kept == {"host": 1100, "gpu0": 1100, "gpu1": 1100}
    assert need.peak == {"host": 3000, "gpu0": 2200, "gpu1": 3300}


def loaded_with(folder, measured):
    """An account in which a version has been loaded with this measurement, and the version."""
    (folder / "weights").write_bytes(bytes(1000))
    version = version_of(folder, "instance_group [ { kind: KIND_GPU count: 2 gpus: [ 0 ] } ]")
    account = Account()
    return account, version, loaded(account, version, measured)


def loaded(account, version, measured):
    """The entry of a version after a load with this measurement."""
    entry = Entry("m", 1, {})
    found = found_out(account.need(version, ModelMemory()), measured, {})
    entry.bytes, entry.source, entry.exact, entry.known = found
    account.learn(version, entry, measured.peak)
    return entry


def test_the_next_load_needs_what_is_known_of_the_last_one_and_guesses_the_rest(tmp_path):
    measured = Measured({"host": 40}, {"host": 70}, exact=True, known={"host"}, unknown={"gpu0"})

    account, version, entry = loaded_with(tmp_path, measured)
    need = account.need(version, ModelMemory())

    assert (need.peak, need.kept) == ({"host": 70, "gpu0": 2200}, {"host": 40, "gpu0": 1100})
    assert account.need(version, ModelMemory({"gpu0": 5})).kept == {"host": 40, "gpu0": 5}
    assert [(each.type, each.byte_size) for each in shown(entry)] == [("CPU", 40)]


def test_after_an_exact_measurement_nothing_is_guessed(tmp_path):
    measured = Measured({"host": 40}, {"host": 70}, exact=True, known={"host", "gpu0"})

    account, version, _ = loaded_with(tmp_path, measured)

    assert account.need(version, ModelMemory()).kept == {"host": 40, "gpu0": 0}


BOTH = {"host": 40, "gpu0": 20}
OF_THE_GPU = Measured({"gpu0": 25}, {"gpu0": 60}, exact=True, known={"gpu0"}, unknown={"host"})


@pytest.mark.parametrize(
    ("measured", "peak", "kept", "other"),
    [
        # The peak of a load beside others is not known.
        (Measured(processes=50), {"host": 90, "gpu0": 30}, {"host": 50, "gpu0": 20}, "gpu0"),
        (OF_THE_GPU, {"host": 90, "gpu0": 60}, {"host": 40, "gpu0": 25}, "host"),
    ],
)
def test_a_measurement_of_one_device_leaves_what_is_known_of_the_others(
    tmp_path, measured, peak, kept, other
):
    whole = Measured(BOTH, {"host": 90, "gpu0": 30}, exact=True, known=set(BOTH))
    account, version, _ = loaded_with(tmp_path, whole)

    loaded(account, version, measured)
    of_these_files = account.need(version, ModelMemory())
    version.source.shared = "other files"
    loaded(account, version, measured)
    of_other_files = account.need(version, ModelMemory())

    assert (of_these_files.peak, of_these_files.kept) == (peak, kept)
    assert of_other_files.kept[other] == 1100  # a guess


def test_an_exact_measurement_replaces_all_that_is_known(tmp_path):
    both = Measured({"host": 40, "gpu0": 20}, exact=True, known={"host", "gpu0"})
    account, version, _ = loaded_with(tmp_path, both)

    loaded(
        account, version, Measured({"host": 30}, {"host": 60}, exact=True, known={"host", "gpu0"})
    )

    need = account.need(version, ModelMemory())
    assert (need.peak, need.kept) == ({"host": 60, "gpu0": 0}, {"host": 30, "gpu0": 0})


def test_an_estimate_takes_the_place_of_the_guess(tmp_path):
    version = version_of(tmp_path, "instance_group [ { kind: KIND_GPU count: 2 gpus: [ 0 ] } ]")

    assert Account().need(version, ModelMemory({"gpu0": 5})).peak == {"gpu0": 5}


@pytest.mark.parametrize(
    ("measured", "expected", "exact"),
    [
        (
            Measured({"host": 2, "gpu0": 6}, exact=True, known={"host", "gpu0"}),
            {"host": 3, "gpu0": 6},
            True,
        ),
        (Measured({"host": 2, "gpu0": 6}), {"host": 3, "gpu0": 9}, False),
        (Measured({"host": 7}, processes=7), {"host": 3, "gpu0": 9}, False),
    ],
)
def test_devices_that_the_backend_does_not_report_are_measured_or_estimated(
    measured, expected, exact
):
    need = SimpleNamespace(kept={"host": 1, "gpu0": 9})

    assert found_out(need, measured, {"host": 3})[:3] == (expected, "backend", exact)


def test_statistics_name_devices_as_triton_does():
    assert (usage("host", 1).type, usage("gpu3", 1).type, usage("gpu3", 1).id) == ("CPU", "GPU", 3)
