"""Sizes as text, options, and parameters of models."""

import pytest
from core_memory_budget.options import MemoryOptions, ModelMemory
from core_memory_budget.sizes import read_sizes, shown

from core import config as configuration
from core.errors import CoreError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1000", {"host": 1000}),
        ("2K", {"host": 2048}),
        ("1.5M", {"host": 3 << 19}),
        ("8GiB", {"host": 8 << 30}),
        ("1 TB", {"host": 1 << 40}),
        ("50%", {"host": 500}),
        ("gpu0:8G, host:25%", {"gpu0": 8 << 30, "host": 250}),
    ],
)
def test_a_size_is_read(text, expected):
    assert read_sizes("--memory-budget", text, {"host": 1000}) == expected


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("much", "'much' is no size"),
        ("-1", "'-1' is no size"),
        ("0", "at least one byte"),
        ("8X", "'8X' is no size"),
        ("disk:8G", "no device 'disk'"),
        ("1G,2G", "two sizes for host"),
        ("gpu3:50%", "memory of gpu3 is unknown"),
    ],
)
def test_a_wrong_size_is_refused_by_name(text, hint):
    with pytest.raises(CoreError, match="--memory-budget") as error:
        read_sizes("--memory-budget", text, {"host": 1000})

    assert hint in error.value.message


def test_workers_get_equal_parts_of_the_budget():
    options = MemoryOptions(memory_budget=["8G", "gpu0:4G"])

    assert options.budget({}, 2, (0,)) == {"host": 4 << 30, "gpu0": 2 << 30}


def test_a_budget_of_a_gpu_that_is_not_there_is_refused():
    options = MemoryOptions(memory_budget=["8G", "gpu7:20G"])

    with pytest.raises(
        CoreError, match="there is no gpu7 here, expected host or one of gpu0, gpu1"
    ):
        options.budget({}, 1, (0, 1))


def test_a_budget_of_a_gpu_on_a_machine_without_any_is_told(caplog):
    options = MemoryOptions(memory_budget=["gpu0:20G"])

    assert options.budget({}, 1, ()) == {"gpu0": 20 << 30}
    assert "no GPU is visible here" in caplog.text


def test_a_size_is_shown_with_a_unit():
    assert [shown(1), shown(1536), shown(5 << 20), shown(3 << 29)] == [
        *("1 bytes", "1.5 KiB", "5.0 MiB", "1.5 GiB")
    ]


def read(on_request=False, **parameters):
    text = "".join(
        f'parameters {{ key: "memory.{name}" value {{ string_value: "{value}" }} }}'
        for name, value in parameters.items()
    )
    return ModelMemory.of(configuration.parse_text(f'name: "m" {text}', "test"), on_request)


def test_parameters_of_a_model_are_read():
    found = read(
        estimate="1K,gpu0:2K", pin="true", priority="-3", load_on_request="TRUE", idle_secs="0.5"
    )

    assert found == ModelMemory({"host": 1024, "gpu0": 2048}, True, -3, True, 0.5)


def test_a_model_takes_precedence_over_the_option():
    assert read(on_request=True).on_request
    assert not read(on_request=True, load_on_request="false").on_request


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pin", "maybe"),
        ("priority", "high"),
        ("priority", "1.5"),
        ("idle_secs", "-1"),
        ("idle_secs", "nan"),
        ("idle_secs", "soon"),
        ("estimate", "50%"),
        ("load_on_request", ""),
    ],
)
def test_a_wrong_parameter_is_refused_by_model_and_name(name, value):
    with pytest.raises(CoreError, match=f"model 'm': parameter memory.{name}"):
        read(**{name: value})
