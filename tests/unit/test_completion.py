"""The shared functions of backends that complete configurations."""

import pytest

from core.backend import Backend, ModelInstance
from core.completion import (
    default_max_batch_size,
    fill_max_batch_size,
    fill_scheduler,
    is_described,
    tensors_of_the_server,
)
from core.config import parse_text
from core.errors import CoreError

INPUT = 'input { name: "x" data_type: TYPE_FP32 dims: 1 }'
OUTPUT = 'output { name: "y" data_type: TYPE_FP32 dims: 1 }'
RAGGED = """
batch_input { kind: BATCH_ELEMENT_COUNT target_name: "count" data_type: TYPE_FP32 source_input: "x" }
"""


def config(text=""):
    return parse_text(f'name: "m" {text}', "config.pbtxt")


@pytest.mark.parametrize(
    ("text", "described"),
    [
        (INPUT + OUTPUT, True),
        (RAGGED + OUTPUT, True),
        (INPUT, False),
        (OUTPUT, False),
        (INPUT + OUTPUT + 'input { name: "z" data_type: TYPE_FP32 }', False),
        (INPUT + OUTPUT + 'output { name: "z" dims: 1 }', False),
    ],
)
def test_only_a_complete_description_is_not_filled_in(text, described):
    assert is_described(config(text)) is described


def test_controls_states_and_batch_inputs_belong_to_the_server():
    inputs, outputs = tensors_of_the_server(
        config(
            INPUT
            + RAGGED
            + 'sequence_batching { control_input { name: "start" }'
            + ' state { input_name: "before" output_name: "after" } }'
        )
    )

    assert inputs == {"start", "before", "count"}
    assert outputs == {"after"}


def test_the_default_batch_size_is_a_setting():
    backend = Backend(instance=ModelInstance)

    assert default_max_batch_size(backend, "plug") == 4
    assert default_max_batch_size(backend, "plug", 32) == 32
    backend.config = {"default-max-batch-size": "0"}
    assert default_max_batch_size(backend, "plug", 32) == 0


@pytest.mark.parametrize("text", ["many", "-1", "", "\uff11"])
def test_a_default_that_is_not_a_number_is_refused(text):
    backend = Backend(instance=ModelInstance)
    backend.config = {"default-max-batch-size": text}

    with pytest.raises(CoreError, match=f"--backend-config=plug,default-max-batch-size={text}:"):
        default_max_batch_size(backend, "plug")


@pytest.mark.parametrize(
    ("rows", "more", "scheduler"),
    [
        (8, "", "dynamic_batching"),
        (1, "", None),
        (8, "sequence_batching { }", "sequence_batching"),
    ],
)
def test_a_model_of_several_rows_gets_dynamic_batching(rows, more, scheduler, caplog):
    filled = config(more)

    fill_max_batch_size(filled, rows)
    fill_scheduler(filled)

    assert filled.max_batch_size == rows
    assert filled.WhichOneof("scheduling_choice") == scheduler
    assert f"autofilled max_batch_size to {rows} for model 'm'" in caplog.text
