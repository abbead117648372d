"""Rules of instance_group. Texts are Triton's up to the colon; the rest names the field."""

# ruff: noqa: E501 (a searchable text stays on one line)

import pytest

IO = 'input { name: "x" data_type: TYPE_FP32 dims: -1 } output { name: "y" data_type: TYPE_FP32 dims: -1 } '
MODEL = 'backend: "python" ' + IO
PLAN = 'platform: "tensorrt_plan" ' + IO
UNSUPPORTED = "specifies invalid or unsupported gpu id 5. GPUs with at least the minimum required CUDA compute compatibility of 6.000000 are: "


@pytest.mark.parametrize(
    ("group", "gpus", "expected"),
    [
        ("kind: KIND_CPU gpus: 0", (), "has kind KIND_CPU but specifies one or more GPUs: instance_group[0].gpus is [0]"),
        ("kind: KIND_MODEL gpus: 0", (0,), "has kind KIND_MODEL but specifies one or more GPUs: instance_group[0].gpus is [0]"),
        ("gpus: 5", (), "has kind KIND_CPU but specifies one or more GPUs: instance_group[0].gpus is [5]"),
        ("gpus: [0, 5]", (0,), "has kind KIND_CPU but specifies one or more GPUs: instance_group[0].gpus is [0, 5]"),
        ("kind: KIND_GPU", (), "has kind KIND_GPU but no GPUs are available: instance_group[0]"),
        ("kind: KIND_GPU gpus: 5", (), UNSUPPORTED + "none; instance_group[0].gpus[0]"),
        ("kind: KIND_GPU gpus: [0, 5]", (1, 0), UNSUPPORTED + "0, 1; instance_group[0].gpus[1]"),
        ("kind: 99", (), "has unexpected kind 99: instance_group[0].kind; there are KIND_AUTO, KIND_GPU, KIND_CPU, KIND_MODEL"),
        ('kind: KIND_CPU profile: "0"', (),
         "and platform specifies profile field which is only supported for TensorRT models: instance_group[0].profile"),
    ],
)  # fmt: skip
def test_an_instance_group_is_refused(refusal, group, gpus, expected):
    text = MODEL + f"instance_group {{ {group} }}"

    assert refusal(text, gpus) == f"instance group m_0 of model m {expected}"


def test_an_error_of_a_group_has_its_name_and_index(refusal):
    text = MODEL + 'instance_group [ { }, { name: "big" kind: KIND_CPU gpus: 1 } ]'

    assert refusal(text) == (
        "instance group big of model m has kind KIND_CPU but specifies one or more GPUs: "
        "instance_group[1].gpus is [1]"
    )


@pytest.mark.parametrize("profile", ["-1", "", "x", "1.5", "²"])
def test_a_profile_is_a_number(refusal, profile):
    assert refusal(PLAN + f'instance_group {{ profile: [ "0", "{profile}" ] }}', (0,)) == (
        f"instance group m_0 of model m and platform tensorrt_plan specifies invalid profile {profile}. "
        "The field should contain the string representation of a non-negative integer: "
        "instance_group[0].profile[1]"
    )


PLAIN = {
    "name": "m_0",
    "kind": "KIND_CPU",
    "count": 1,
    "gpus": [],
    "secondary_devices": [],
    "profile": [],
    "passive": False,
    "host_policy": "",
}


@pytest.mark.parametrize(
    ("group", "gpus", "changes"),
    [
        ("", (), {}),
        ("", (0, 1), {"kind": "KIND_GPU", "gpus": [0, 1]}),
        ("count: -3", (), {}),
        ("kind: KIND_GPU", (1, 0), {"kind": "KIND_GPU", "gpus": [0, 1]}),
        ("kind: KIND_GPU gpus: [1, 1]", (1,), {"kind": "KIND_GPU", "gpus": [1, 1]}),
        ("kind: KIND_MODEL count: 2", (0,), {"kind": "KIND_MODEL", "count": 2}),
        ("passive: true", (), {"passive": True}),
        ('host_policy: "absent"', (), {"host_policy": "absent"}),
        ("secondary_devices { kind: KIND_NVDLA device_id: -3 }", (), {"secondary_devices": [{"kind": "KIND_NVDLA", "device_id": -3}]}),
        ('rate_limiter { resources { name: "R" global: true count: 2 } priority: 3 }', (),
         {"rate_limiter": {"resources": [{"name": "R", "global": True, "count": 2}], "priority": 3}}),
    ],
)  # fmt: skip
def test_an_instance_group_is_accepted(settled, group, gpus, changes):
    found = settled(MODEL + f"instance_group {{ {group} }}", gpus)["instance_group"]

    assert found == [PLAIN | changes]


def test_groups_may_share_a_name(settled):
    text = MODEL + 'instance_group [ { name: "g" }, { name: "g" }, { kind: KIND_MODEL } ]'

    assert [group["name"] for group in settled(text)["instance_group"]] == ["g", "g", "m_2"]


def test_a_plan_may_have_profiles(settled):
    text = PLAN + 'instance_group { profile: ["2", "0"] }'

    assert settled(text, (0,))["instance_group"][0]["profile"] == ["2", "0"]
