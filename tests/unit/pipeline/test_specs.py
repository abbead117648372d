"""The instances of instance groups, and those that may stay after a change."""

import pytest

from core import config as configuration
from core.backend import Device
from core.pipeline.instances.specs import instance_specs, match_specs
from core.system.host_policy import HostPolicies, HostPolicy

CPU = "kind: KIND_CPU"


def seats(text, policies=None, gpus=()):
    config = configuration.parse_text(f'name: "m" backend: "b" instance_group [ {text} ]', "test")
    configuration.normalise(config, {}, gpus)
    return instance_specs(config, policies or HostPolicies({}))


def names(found):
    return [seat.name for seat in found]


def kept_and_new(before, after, gpus=()):
    """Names of the old seats that stay, and of the new ones."""
    old = seats(before, gpus=gpus)
    kept, opened = match_specs(old, seats(after, gpus=gpus))
    return names(old[index] for index in kept), names(opened)


def test_each_group_has_its_count_on_each_of_its_gpus():
    found = seats(
        '{ name: "a" count: 2 kind: KIND_GPU }, { name: "b" kind: KIND_MODEL }', gpus=[0, 1]
    )

    assert [(seat.name, str(seat.device)) for seat in found] == [
        ("a_0", "gpu:0"),
        ("a_1", "gpu:0"),
        ("a_0", "gpu:1"),
        ("a_1", "gpu:1"),
        ("b_0", "model:0"),
    ]


@pytest.mark.parametrize(
    "group,name",
    [
        ("kind: KIND_CPU", "cpu"),
        ("kind: KIND_MODEL", "model"),
        ("kind: KIND_GPU gpus: [ 1 ]", "gpu_1"),
        ('kind: KIND_CPU host_policy: "mine"', "mine"),
    ],
)
def test_an_instance_has_the_policy_of_its_group_or_of_its_kind(group, name):
    (seat,) = seats(f"{{ {group} }}", gpus=[0, 1])

    assert seat.host_policy == HostPolicy(name)


def test_instances_have_the_settings_of_their_group():
    config = configuration.parse_text(
        'name: "m" platform: "tensorrt_plan" backend: "tensorrt" instance_group [ { kind: KIND_CPU '
        'passive: true profile: [ "0", "2" ] secondary_devices [ { kind: KIND_NVDLA device_id: 1 } ] '
        "} ]",
        "test",
    )
    configuration.normalise(config, {}, [])

    (seat,) = instance_specs(config, HostPolicies({}))

    assert seat.passive
    assert seat.profiles == ("0", "2")
    assert seat.secondary_devices == (Device("NVDLA", 1),)


@pytest.mark.parametrize(
    "before,after,kept,new",
    [
        ("{ count: 1 }", "{ count: 3 }", ["m_0_0"], ["m_0_1", "m_0_2"]),
        ("{ count: 3 }", "{ count: 1 }", ["m_0_0"], []),
        ("{ count: 2 }", '{ name: "g" count: 2 }', ["m_0_0", "m_0_1"], []),
        ('{ name: "a" }, { name: "b" }', '{ name: "b" }, { name: "c" }', ["a_0", "b_0"], []),
        ("{ }", "{ kind: KIND_MODEL }", [], ["m_0_0"]),
        ("{ }", "{ passive: true }", [], ["m_0_0"]),
        ("{ }", '{ host_policy: "x" }', [], ["m_0_0"]),
        ("{ }", '{ host_policy: "cpu" }', ["m_0_0"], []),
        ("{ }", "{ rate_limiter { priority: 2 } }", [], ["m_0_0"]),
        ("{ }", '{ rate_limiter { resources [ { name: "R" count: 1 } ] } }', [], ["m_0_0"]),
        ("{ }", "{ secondary_devices [ { device_id: 1 } ] }", [], ["m_0_0"]),
    ],
)
def test_an_equal_instance_stays_whatever_its_name(before, after, kept, new):
    assert kept_and_new(before, after) == (kept, new)


def test_an_instance_stays_on_its_gpu():
    assert kept_and_new(
        "{ kind: KIND_GPU gpus: [ 0, 1 ] }", "{ kind: KIND_GPU gpus: [ 1 ] }", gpus=[0, 1]
    ) == (["m_0_0"], [])


def test_two_instances_never_have_one_name():
    """g_0 could stay for h_0, but another g_0 is wanted."""
    before = f'{{ name: "g" {CPU} }}'
    after = f'{{ name: "g" kind: KIND_MODEL }}, {{ name: "h" {CPU} }}'

    assert kept_and_new(before, after) == ([], ["g_0", "h_0"])
