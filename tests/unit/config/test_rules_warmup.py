"""Rules of model_warmup. Texts are Triton's up to the colon; the rest names the field."""

# ruff: noqa: E501 (a searchable text stays on one line)

import pytest

MODEL = (
    'backend: "python" max_batch_size: 4 '
    'input { name: "x" data_type: TYPE_FP32 dims: -1 } output { name: "y" data_type: TYPE_FP32 dims: -1 } '
)


def sample(given: str, batch_size: int = 1) -> str:
    value = f'inputs {{ key: "x" value {{ {given} }} }}'
    return MODEL + f'model_warmup {{ name: "w" batch_size: {batch_size} {value} }}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (sample("data_type: TYPE_FP32 dims: [3, -1] zero_data: true"),
         "warmup setting expects all variable-size dimensions are specified for input 'x' for m: model_warmup[0].inputs['x'].dims[1] is -1"),
        (sample("data_type: TYPE_FP32 dims: -2 zero_data: true"),
         "warmup setting expects dimensions >= 0 for input 'x' for m: model_warmup[0].inputs['x'].dims[0] is -2"),
        (sample("data_type: TYPE_FP32 dims: 3"),
         "warmup setting expects input 'x' to have input_data_type set for m: model_warmup[0].inputs['x'] has no zero_data, random_data or input_data_file"),
        (sample("dims: 3 zero_data: true"), "warmup setting expects input 'x' to have data_type set for m: model_warmup[0].inputs['x']"),
        (sample("data_type: 77 dims: 3 zero_data: true"), "warmup setting expects input 'x' to have data_type set for m: model_warmup[0].inputs['x']"),
        (sample('data_type: TYPE_FP32 dims: 3 input_data_file: ""'),
         "warmup setting expects a file name for input 'x' for m: model_warmup[0].inputs['x'].input_data_file is empty"),
        (sample("data_type: TYPE_FP32 dims: 3 zero_data: true", 5),
         "failed to run warmup sample 'w': batch size 5, max allowed is 4 for m: model_warmup[0].batch_size"),
        (sample("data_type: TYPE_FP32 dims: 3 zero_data: true", 2).replace("max_batch_size: 4", ""),
         "failed to run warmup sample 'w': batch size 2, max allowed is 1 for m: model_warmup[0].batch_size"),
    ],
)  # fmt: skip
def test_a_sample_is_refused(refusal, text, expected):
    assert refusal(text) == expected


@pytest.mark.parametrize(
    ("given", "batch_size"),
    [
        ("data_type: TYPE_FP32 dims: 3 zero_data: true", 4),
        ("data_type: TYPE_FP32 dims: 3 zero_data: false", 1),
        ("data_type: TYPE_FP32 dims: 0 random_data: true", 1),
        ("data_type: TYPE_STRING random_data: true", 1),
        ('data_type: TYPE_FP32 dims: 3 input_data_file: "a/../b"', 1),
        ("data_type: TYPE_FP32 dims: -1", 0),
        ("", 0),
    ],
)
def test_a_sample_is_accepted_and_one_of_batch_size_0_is_switched_off(settled, given, batch_size):
    (found,) = settled(sample(given, batch_size))["model_warmup"]

    assert (found["name"], found["batch_size"], found["count"]) == ("w", batch_size, 0)
