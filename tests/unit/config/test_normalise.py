"""Defaults that are written into a configuration."""

import pytest

from core.config import ModelConfig, normalise, parse_text


def normal(text="", instances=None, gpus=(), name="m"):
    config = parse_text(text, "test")
    config.name = name
    normalise(config, instances or {}, gpus)
    return config


def groups(config):
    kinds = {1: "GPU", 2: "CPU", 3: "MODEL"}
    return [
        (group.name, kinds[group.kind], group.count, list(group.gpus))
        for group in config.instance_group
    ]


@pytest.mark.parametrize("text", ["", "version_policy { }"])
def test_the_newest_version_is_served_by_default(text):
    assert normal(text).version_policy.latest.num_versions == 1


def test_a_version_policy_stays():
    assert normal("version_policy { all { } }").version_policy.WhichOneof("policy_choice") == "all"


def test_max_batch_size_is_the_default_preferred_batch_size():
    assert list(
        normal("max_batch_size: 8 dynamic_batching { }").dynamic_batching.preferred_batch_size
    ) == [8]
    assert list(normal("dynamic_batching { }").dynamic_batching.preferred_batch_size) == []
    oldest = normal("max_batch_size: 8 sequence_batching { oldest { } }").sequence_batching.oldest
    assert list(oldest.preferred_batch_size) == [8]


def test_preferred_sizes_stay():
    text = "max_batch_size: 8 dynamic_batching { preferred_batch_size: [2, 4] }"
    assert list(normal(text).dynamic_batching.preferred_batch_size) == [2, 4]


def test_a_sequence_may_idle_for_a_second():
    assert normal("sequence_batching { }").sequence_batching.max_sequence_idle_microseconds == 10**6


def test_pinned_memory_is_on_unless_switched_off():
    config = normal("optimization { input_pinned_memory { enable: false } }")

    assert not config.optimization.input_pinned_memory.enable
    assert config.optimization.output_pinned_memory.enable


def test_one_group_is_named_after_the_model_and_further_ones_are_numbered():
    assert groups(normal()) == [("m", "CPU", 1, [])]
    assert groups(
        normal('instance_group [ { count: 3 }, { name: "b" }, { kind: KIND_MODEL } ]')
    ) == [
        ("m_0", "CPU", 3, []),
        ("b", "CPU", 1, []),
        ("m_2", "MODEL", 1, []),
    ]


@pytest.mark.parametrize(
    ("group", "gpus", "expected"),
    [
        ("", [], ("CPU", [])),
        ("", [0, 1], ("GPU", [0, 1])),
        ("gpus: [ 1 ]", [0, 1], ("GPU", [1])),
        ("gpus: [ 1, 5 ]", [0, 1], ("CPU", [1, 5])),
        ("kind: KIND_GPU", [1, 0], ("GPU", [0, 1])),
        ("kind: KIND_CPU", [0], ("CPU", [])),
        ("kind: KIND_MODEL", [0], ("MODEL", [])),
    ],
)
def test_instances_go_to_all_gpus_if_there_are_any(group, gpus, expected):
    ((_, kind, _, found),) = groups(normal(f"instance_group {{ {group} }}", gpus=gpus))

    assert (kind, found) == expected


def test_the_default_count_is_the_backends():
    assert groups(normal(instances={"CPU": 4, "GPU": 2})) == [("m", "CPU", 4, [])]
    assert groups(normal(instances={"CPU": 4, "GPU": 2}, gpus=[0])) == [("m", "GPU", 2, [0])]
    assert groups(normal("instance_group { count: 3 }", instances={"CPU": 4}))[0][2] == 3


def test_a_backend_that_only_knows_kind_model_gets_it():
    assert groups(normal(instances={"MODEL": 1}, gpus=[0])) == [("m", "MODEL", 1, [])]


def test_an_ensemble_gets_no_instances_and_no_memory():
    config = normal('platform: "ensemble" ensemble_scheduling { }')

    assert not config.instance_group
    assert not config.HasField("optimization")
    assert config.HasField("model_transaction_policy")
    assert config.version_policy.latest.num_versions == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "max_batch_size: 4 dynamic_batching { }",
        "ensemble_scheduling { }",
        "instance_group { } ",
    ],
)
def test_twice_is_the_same_as_once(text):
    config = normal(text, gpus=[0])
    before = ModelConfig()
    before.CopyFrom(config)

    normalise(config, {}, [0])

    assert config == before


@pytest.mark.parametrize("text", ["", "instance_group { }", "instance_group { kind: KIND_AUTO }"])
@pytest.mark.parametrize(
    ("instances", "kind"),
    [({"CPU": 2}, "CPU"), ({"CPU": 2, "GPU": 1}, "GPU"), ({"GPU": 1}, "GPU"), ({}, "GPU")],
)
def test_a_backend_that_runs_on_cpus_alone_gets_no_gpu_instances(text, instances, kind):
    [(_, found, _, gpus)] = groups(normal(text, instances, gpus=[0]))

    assert found == kind
    assert gpus == ([0] if kind == "GPU" else [])


def test_a_group_that_names_gpus_gets_them_from_every_backend():
    assert groups(normal("instance_group { gpus: [1] }", {"CPU": 1}, gpus=[0, 1])) == [
        ("m_0", "GPU", 1, [1])
    ]
