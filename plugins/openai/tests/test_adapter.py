"""The tensors of a request, by the names of a model's inputs."""

import base64
import json

import pytest
from frontend_openai.adapter import Asked, Prompt, TextModel
from frontend_openai.document import Document
from frontend_openai.engine_info import EngineInfo
from frontend_openai.errors import FieldError
from frontend_openai.sampling import SamplingFields, read_sampling

from core import dtypes
from core.config import InputSpec, OutputSpec, Signature
from core.errors import CoreError

TENSORRT_LLM = {
    "text_input": ("BYTES", (1,), False),
    "max_tokens": ("INT32", (1,), False),
    "stop_words": ("BYTES", (-1,), True),
    "temperature": ("FP32", (1,), True),
    "seed": ("UINT64", (1,), True),
    "stream": ("BOOL", (1,), True),
    "return_num_input_tokens": ("BOOL", (1,), True),
    "guided_decoding_guide_type": ("BYTES", (1,), True),
    "guided_decoding_guide": ("BYTES", (1,), True),
}
TEXT = {"text_input": ("BYTES", (1,), False)}
VLLM = {
    "text_input": ("BYTES", (1,), False),
    "sampling_parameters": ("BYTES", (1,), True),
    "image": ("BYTES", (-1,), True),
}


def model(inputs, *, info=None, batch=0, outputs=("text_output",)):
    specs = {
        name: InputSpec(name, getattr(dtypes, dtype), dims, optional=optional)
        for name, (dtype, dims, optional) in inputs.items()
    }
    types = outputs if isinstance(outputs, dict) else dict.fromkeys(outputs, "BYTES")
    found = {name: OutputSpec(name, getattr(dtypes, each), (1,)) for name, each in types.items()}
    return TextModel(Signature("m", 1, specs, found, batch, True), info or EngineInfo())


def sampling(**values):
    found = SamplingFields()
    for name, value in values.items():
        found.set(name, value)
    return found


def request_of(found, fields=None, prompt=None, asked=None):
    fields, prompt = fields or sampling(), prompt or Prompt("hello")
    found.check(prompt, fields)
    return found.requests(prompt, [fields], asked or Asked())[0]


def test_the_requests_of_one_prompt_share_its_bytes():
    found = model(TENSORRT_LLM, batch=8)
    fields = [sampling(seed=number) for number in range(3)]

    requests = found.requests(Prompt("a long prompt"), fields, Asked())

    texts = [each.inputs["text_input"] for each in requests]
    assert len({id(each) for each in texts}) == 3 and len({id(each.raw) for each in texts}) == 1
    assert [values(each)["seed"][1] for each in requests] == [[0], [1], [2]]


def test_choices_of_one_sampling_share_its_bytes():
    found = model(VLLM, info=EngineInfo(is_engine=True, supports=frozenset({"schema"})))
    fields = sampling(max_tokens=5, structured_outputs={"json": {"title": "a" * 1000}})
    asked = Asked(stream=True, priority=2)

    requests = found.requests(Prompt("a"), [fields] * 3, asked)

    tensors = [each.inputs["sampling_parameters"] for each in requests]
    assert len({id(each) for each in tensors}) == 3 and len({id(each.raw) for each in tensors}) == 1
    assert [each.priority for each in requests] == [2, 2, 2]
    assert values(requests[2]) == values(found.requests(Prompt("a"), [fields], asked)[0])


def test_what_each_choice_has_a_copy_of_is_bounded():
    engine = EngineInfo(is_engine=True, supports=frozenset({"suffix"}))

    with pytest.raises(FieldError, match="131073 characters; at most 131072") as suffix:
        model(VLLM, info=engine).check(Prompt("a", suffix="a" * 131_073), sampling())
    with pytest.raises(FieldError, match="1000011 bytes; at most 917504") as structure:
        sampling(structured_outputs={"json": "a" * 1_000_000})
    with pytest.raises(FieldError, match="1025 tokens; at most 1024") as tokens:
        read_sampling(Document({"stop_token_ids": [1] * 1025}), 0, chat=True)

    found = [each.value.param for each in (suffix, structure, tokens)]
    assert found == ["suffix", "structured_outputs", "stop_token_ids"]


def test_parameters_of_choices_do_not_mix():
    found = model(TEXT, info=EngineInfo(supports=frozenset({"top_k"})))

    first, second = found.requests(Prompt("a"), [sampling(top_k=5)] * 2, Asked())
    first.parameters["top_k"] = 6

    assert second.parameters == {"top_k": 5}


def values(request):
    return {name: (list(t.shape), t.array.ravel().tolist()) for name, t in request.inputs.items()}


def test_fields_go_into_inputs_of_their_names_with_a_batch_dimension():
    fields = sampling(max_tokens=5, stop=["a", "bc"], temperature=0.5, seed=7)

    request = request_of(model(TENSORRT_LLM, batch=8), fields, asked=Asked(stream=True, usage=True))

    assert values(request) == {
        "text_input": ([1, 1], [b"hello"]),
        "max_tokens": ([1, 1], [5]),
        "stop_words": ([1, 2], [b"a", b"bc"]),
        "temperature": ([1, 1], [0.5]),
        "seed": ([1, 1], [7]),
        "stream": ([1, 1], [True]),
        "return_num_input_tokens": ([1, 1], [True]),
    }


def test_a_model_that_needs_a_number_of_tokens_gets_that_of_triton():
    assert values(request_of(model(TENSORRT_LLM)))["max_tokens"] == ([1], [16])


def test_a_required_input_of_a_field_is_none_that_is_missing():
    with pytest.raises(CoreError, match="needs the inputs table"):
        model({**TEXT, "table": ("FP32", (-1,), False)})
    assert model({**TEXT, "table": ("FP32", (-1,), True)}).output == "text_output"


def test_a_schema_guides_the_model():
    fields = sampling(max_tokens=5, structured_outputs={"json": {"type": "object"}})

    found = values(request_of(model(TENSORRT_LLM), fields))

    assert found["guided_decoding_guide_type"][1] == [b"json_schema"]
    assert json.loads(found["guided_decoding_guide"][1][0]) == {"type": "object"}


@pytest.mark.parametrize(
    ("structure", "kind", "guide"),
    [
        ({"json_object": True}, b"json_schema", b'{"type":"object"}'),
        ({"regex": r"\d{4}"}, b"regex", rb"\d{4}"),
        ({"grammar": "root ::= [0-9]+"}, b"ebnf_grammar", b"root ::= [0-9]+"),
        (
            {"choice": ["yes", 'a "\n\\', "ü😀"]},
            b"ebnf_grammar",
            'root ::= "yes" | "a \\"\\n\\\\" | "ü😀"'.encode(),
        ),
    ],
)
def test_each_structure_is_a_guide_of_its_type(structure, kind, guide):
    document = Document({"structured_outputs": structure, "max_tokens": 5})
    fields = read_sampling(document, 0, chat=True)

    found = values(request_of(model(TENSORRT_LLM, batch=8), fields))

    assert found["guided_decoding_guide_type"] == ([1, 1], [kind])
    assert found["guided_decoding_guide"] == ([1, 1], [guide])


@pytest.mark.parametrize("schema", [{"type": "object"}, '{"type": "object"}'])
def test_a_schema_that_is_a_text_is_not_encoded_twice(schema):
    document = Document({"structured_outputs": {"json": schema, "regex": None}, "max_tokens": 5})
    fields = read_sampling(document, 0, chat=True)

    guided = values(request_of(model(TENSORRT_LLM), fields))["guided_decoding_guide"][1][0]

    assert json.loads(guided) == {"type": "object"}


@pytest.mark.parametrize("schema", ["{}", "true", {}, True])
def test_a_schema_of_any_object_asks_for_an_object(schema):
    document = Document({"structured_outputs": {"json": schema}, "max_tokens": 5})
    fields = read_sampling(document, 0, chat=True)

    found = values(request_of(model(TENSORRT_LLM), fields))

    assert fields.values["structured_outputs"] == {"json_object": True}
    assert json.loads(found["guided_decoding_guide"][1][0]) == {"type": "object"}


SCORED = {**TENSORRT_LLM, "return_log_probs": ("BOOL", (1,), True)}
OUTPUTS = {"text_output": "BYTES", "cum_log_probs": "FP32", "output_log_probs": "FP32"}


def logprobs_for(field):
    """Return the fields of a completion with `field`."""
    fields = sampling(max_tokens=5)
    fields.set("logprobs", 0, field)
    return fields


def test_the_best_of_several_texts_needs_the_scores_of_tensorrt_llm():
    found = model(SCORED, outputs=OUTPUTS)

    request = request_of(found, logprobs_for("best_of"), asked=Asked(score=True))

    assert values(request)["return_log_probs"] == ([1], [True])
    with pytest.raises(FieldError, match="best_of: model 'm' does not support this"):
        request_of(model(TENSORRT_LLM), logprobs_for("best_of"), asked=Asked(score=True))


@pytest.mark.parametrize("score", [{}, {"cum_log_probs": "BYTES"}, {"cum_log_probs": "INT32"}])
def test_the_best_of_several_texts_is_refused_without_an_output_of_scores(score):
    found = model(SCORED, outputs={"text_output": "BYTES", **score})

    with pytest.raises(FieldError, match=r"best_of: .* needs an output 'cum_log_probs'") as refused:
        request_of(found, logprobs_for("best_of"), asked=Asked(score=True))

    assert refused.value.param == "best_of"


def test_log_probabilities_without_tokens_are_refused():
    found = model(SCORED, outputs=OUTPUTS)

    with pytest.raises(FieldError, match="come without the texts of their tokens") as refused:
        request_of(found, logprobs_for("logprobs"), asked=Asked(logprobs=True))

    assert refused.value.param == "logprobs"


@pytest.mark.parametrize(
    ("inputs", "fields"),
    [
        (TENSORRT_LLM, {"top_p": 0.5}),
        (TEXT, {"structured_outputs": {"regex": "a"}}),
        (TEXT, {"max_tokens": 5}),
        (TEXT, {"stop": ["a"]}),
    ],
)
def test_a_field_without_an_input_is_refused(inputs, fields):
    with pytest.raises(FieldError) as refused:
        request_of(model(inputs), sampling(**fields))

    assert refused.value.param == next(iter(fields))


def test_a_value_that_does_not_fit_its_input_is_refused():
    with pytest.raises(FieldError, match="seed"):
        request_of(model(TENSORRT_LLM), sampling(seed=-1))


def test_supported_fields_without_an_input_are_parameters():
    info = EngineInfo(supports=frozenset({"max_tokens", "stop"}))

    request = request_of(model(TEXT, info=info), sampling(max_tokens=5, stop=["a"]))

    assert request.parameters == {"max_tokens": 5, "stop": '["a"]'}
    assert list(request.inputs) == ["text_input"]


def test_vllm_reads_structures_as_text_and_images_in_base64():
    fields = sampling(structured_outputs={"choice": ["a"]}, max_tokens=3)

    request = request_of(model(VLLM), fields, Prompt("x", images=[b"\x89PNG"]))

    found = values(request)
    sent = json.loads(found["sampling_parameters"][1][0])
    assert sent == {"structured_outputs": '{"choice":["a"]}', "max_tokens": 3}
    assert found["image"] == ([1], [base64.b64encode(b"\x89PNG")])


@pytest.mark.parametrize("asked", [Asked(), Asked(stream=True)])
def test_inputs_that_a_model_needs_are_sent_also_without_a_value(asked):
    needed = {name: (dtype, dims, False) for name, (dtype, dims, _) in VLLM.items()}
    del needed["image"]
    found = model({**needed, "stream": ("BOOL", (1,), False)})

    assert values(request_of(found, asked=asked)) == {
        "text_input": ([1], [b"hello"]),
        "stream": ([1], [asked.stream]),
        "sampling_parameters": ([1], [b"{}"]),
    }


def test_an_engine_gets_objects_and_files():
    info = EngineInfo(is_engine=True, supports=frozenset({"choices", "images"}))
    fields = sampling(structured_outputs={"choice": ["a"]}, max_tokens=3)

    found = values(request_of(model(VLLM, info=info), fields, Prompt("x", images=[b"\x89PNG"])))

    sent = json.loads(found["sampling_parameters"][1][0])
    assert sent == {"structured_outputs": {"choice": ["a"]}, "max_tokens": 3}
    assert found["image"] == ([1], [b"\x89PNG"])


@pytest.mark.parametrize(
    ("prompt", "param"),
    [
        (Prompt("x", images=[b"a"]), "messages"),
        (Prompt(tokens=[1]), "prompt"),
        (Prompt("x", suffix="end"), "suffix"),
    ],
)
def test_a_prompt_that_the_model_cannot_take_is_refused(prompt, param):
    with pytest.raises(FieldError) as refused:
        request_of(model(TEXT), prompt=prompt)

    assert refused.value.param == param


def test_a_model_may_take_the_messages_of_a_chat():
    found = model({"messages": ("BYTES", (1,), False)})
    prompt = Prompt("", messages=b'[{"role":"user"}]')

    assert values(request_of(found, prompt=prompt)) == {"messages": ([1], [prompt.messages])}
    with pytest.raises(CoreError, match="takes the messages of a chat"):
        request_of(found)


@pytest.mark.parametrize(
    ("inputs", "outputs", "missing"),
    [
        ({"x": ("FP32", (1,), False)}, ("text_output",), "input named text_input"),
        ({"a": ("BYTES", (1,), False), "b": ("BYTES", (1,), False)}, ("y",), "only one"),
        (TEXT, ("a", "b"), "output named text_output"),
    ],
)
def test_a_model_without_one_text_is_refused(inputs, outputs, missing):
    with pytest.raises(CoreError, match=missing):
        model(inputs, outputs=outputs)


def test_names_do_not_matter_if_there_is_one_text():
    found = model(
        {"question": ("BYTES", (1,), False), "hint": ("BYTES", (1,), True)}, outputs=("a",)
    )

    assert found.output == "a"
    assert values(request_of(found)) == {"question": ([1], [b"hello"])}
