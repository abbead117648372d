"""Control inputs of sequences: their values and datatypes; over virtual time."""

import pytest
from flow.sequences import END, START, Sum, ask, control

import core


async def test_text_may_be_a_correlation_id(serve):
    text = (
        "sequence_batching { direct { } control_input [ "
        + ", ".join(
            [
                control("START", "START", "bool_false_true: [ false, true ]"),
                control("READY", "READY", "fp32_false_true: [ 0, 1 ]"),
                control("CORRID", "CORRID", "data_type: TYPE_STRING"),
            ]
        )
        + " ] }"
    )
    chain = await serve(Sum, text)

    await ask(chain, "my sequence", 1, START)

    assert chain.recorder.batches == [[b"my sequence"]]


class Controls(core.ModelInstance):
    """Notes the controls of each batch: name → datatype and values."""

    async def execute(self, batch):
        found = {name: batch[name] for name in batch if name != "x"}
        self.model.recorder.batches.append(
            {name: (str(array.dtype), array.ravel().tolist()) for name, array in found.items()}
        )
        return {"y": batch["x"]}


@pytest.mark.parametrize("strategy", ["direct { }", "oldest { max_candidate_sequences: 2 }"])
@pytest.mark.parametrize(
    "values,datatype,false,true",
    [
        ("int32_false_true: [ -1, 7 ]", "int32", -1, 7),
        ("fp32_false_true: [ 0.5, 2.5 ]", "float32", 0.5, 2.5),
        ("bool_false_true: [ true, false ]", "bool", True, False),
    ],
)
async def test_controls_have_the_values_of_their_configuration(
    serve, strategy, values, datatype, false, true
):
    kinds = ["START", "READY", "END"]
    inputs = ", ".join(control(kind, kind, values) for kind in kinds)
    chain = await serve(
        Controls, f"sequence_batching {{ {strategy} control_input [ {inputs} ] }}", max_batch_size=1
    )

    for flags in (START, 0, END):
        await ask(chain, 1, 1, flags)

    marks = [(true, true, false), (false, true, false), (false, true, true)]
    assert chain.recorder.batches == [
        {name: (datatype, [value]) for name, value in zip(kinds, found, strict=True)}
        for found in marks
    ]


@pytest.mark.parametrize(
    "datatype,numpy,given,seen",
    [
        ("UINT64", "uint64", 2**64 - 1, 2**64 - 1),
        ("INT64", "int64", 2**63 - 1, 2**63 - 1),
        ("UINT32", "uint32", 2**32 - 1, 2**32 - 1),
        ("INT32", "int32", 2**31 - 1, 2**31 - 1),
        ("UINT32", "uint32", 2**32 + 5, 5),  # the low bits, as Triton casts
    ],
)
async def test_a_correlation_id_has_the_datatype_of_its_control(
    serve, datatype, numpy, given, seen
):
    inputs = control("CORRID", "CORRID", f"data_type: TYPE_{datatype}")
    chain = await serve(
        Controls, f"sequence_batching {{ direct {{ }} control_input [ {inputs} ] }}"
    )

    await ask(chain, given, 1, START | END)

    assert chain.recorder.batches == [{"CORRID": (numpy, [seen])}]
