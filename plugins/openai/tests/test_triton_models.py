"""Models as Triton serves them: ensembles of Python models, and doubles with TensorRT-LLM's tensors."""

import numpy as np
import pytest

pytest.importorskip("backend_python")

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"

BEGIN = """
import numpy as np
import triton_python_backend_utils as pb_utils


def given(request, name, default=None):
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    return default if tensor is None else tensor.as_numpy()


def response(name, array):
    return pb_utils.InferenceResponse([pb_utils.Tensor(name, array)])
"""

# Tokens are the bytes of the text.
PREPROCESSING = """
class TritonPythonModel:
    def execute(self, requests):
        found = []
        for request in requests:
            text = given(request, "QUERY")[0, 0]
            length = given(request, "REQUEST_OUTPUT_LEN")
            found.append(
                pb_utils.InferenceResponse(
                    [
                        pb_utils.Tensor("INPUT_ID", np.frombuffer(text, np.uint8).astype(np.int32)[None]),
                        pb_utils.Tensor("LENGTH", length),
                    ]
                )
            )
        return found
"""
# Sends the prompt back in uppercase, up to the number of tokens; hotter than 1, in lowercase.
ENGINE = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            text = bytes(given(request, "input_ids")[0].astype(np.uint8))
            text = text.lower() if given(request, "temperature", np.zeros(1)).flat[0] > 1 else text.upper()
            text = text[: int(given(request, "request_output_len").flat[0])]
            streaming = given(request, "streaming", np.zeros(1, bool)).flat[0]
            for part in [text[at : at + 1] for at in range(len(text))] if streaming else [text]:
                tokens = np.frombuffer(part, np.uint8).astype(np.int32)[None]
                sender.send(response("output_ids", tokens))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
POSTPROCESSING = """
class TritonPythonModel:
    def execute(self, requests):
        return [
            response("OUTPUT", np.array([[bytes(given(each, "TOKENS")[0].astype(np.uint8))]], np.object_))
            for each in requests
        ]
"""


def tensors(kind, **entries):
    """Return entries of config.pbtxt; a `?` behind a datatype makes an input optional."""
    return "".join(
        f'{kind} {{ name: "{name}" data_type: TYPE_{dtype.rstrip("?")} dims: [ {size} ]'
        f"{' optional: true' if dtype.endswith('?') else ''} }}\n"
        for name, (dtype, size) in entries.items()
    )


def step(model, inputs, outputs):
    maps = [
        f'{kind}_map {{ key: "{key}" value: "{value}" }}'
        for kind, each in (("input", inputs), ("output", outputs))
        for key, value in each.items()
    ]
    return f'step {{ model_name: "{model}" model_version: -1 {" ".join(maps)} }}\n'


DECOUPLED = "model_transaction_policy { decoupled: true }\n"
PYTHON = {
    "preprocessing": (
        PREPROCESSING,
        tensors("input", QUERY=("STRING", 1), REQUEST_OUTPUT_LEN=("INT32", 1))
        + tensors("output", INPUT_ID=("INT32", -1), LENGTH=("INT32", 1)),
    ),
    "tensorrt_llm": (
        ENGINE,
        DECOUPLED
        + tensors(
            "input",
            input_ids=("INT32", -1),
            request_output_len=("INT32", 1),
            temperature=("FP32?", 1),
            streaming=("BOOL?", 1),
        )
        + tensors("output", output_ids=("INT32", -1)),
    ),
    "postprocessing": (
        POSTPROCESSING,
        tensors("input", TOKENS=("INT32", -1)) + tensors("output", OUTPUT=("STRING", 1)),
    ),
}
ENSEMBLE = (
    'name: "ensemble" platform: "ensemble" max_batch_size: 4\n'
    + DECOUPLED
    + tensors(
        "input",
        text_input=("STRING", 1),
        max_tokens=("INT32", 1),
        temperature=("FP32?", 1),
        stream=("BOOL?", 1),
    )
    + tensors("output", text_output=("STRING", -1))
    + "ensemble_scheduling {\n"
    + step(
        "preprocessing",
        {"QUERY": "text_input", "REQUEST_OUTPUT_LEN": "max_tokens"},
        {"INPUT_ID": "ids", "LENGTH": "length"},
    )
    + step(
        "tensorrt_llm",
        {
            "input_ids": "ids",
            "request_output_len": "length",
            "temperature": "temperature",
            "streaming": "stream",
        },
        {"output_ids": "tokens"},
    )
    + step("postprocessing", {"TOKENS": "tokens"}, {"OUTPUT": "text_output"})
    + "}\n"
)


@pytest.fixture
def client(open_server, connect, tmp_path):
    for name, (code, config) in PYTHON.items():
        (tmp_path / name / "1").mkdir(parents=True)
        (tmp_path / name / "1" / "model.py").write_text(BEGIN + code)
        (tmp_path / name / "config.pbtxt").write_text(
            f'backend: "python" max_batch_size: 4\n{config}'
        )
    (tmp_path / "ensemble" / "1").mkdir(parents=True)
    (tmp_path / "ensemble" / "config.pbtxt").write_text(ENSEMBLE)
    return connect(open_server(model_repository=[str(tmp_path)])[1])


def test_an_ensemble_with_the_tensors_of_tensorrt_llm_answers_as_a_whole_and_in_events(client):
    body = {"model": "ensemble", "messages": [{"role": "user", "content": "Hello"}]}
    body |= {"max_tokens": 4, "temperature": 0.5}

    status, whole = client.ask(CHAT, body)
    chunks = client.chunks(CHAT, body)

    assert status == 200, whole
    assert whole["choices"][0]["message"]["content"] == "HELL"
    parts = [each["choices"][0]["delta"].get("content") for each in chunks]
    assert [each for each in parts if each] == ["H", "E", "L", "L"]


def test_fields_reach_the_model_within_the_ensemble(client):
    body = {"model": "ensemble", "prompt": "Hello", "temperature": 1.5}

    status, found = client.ask(COMPLETIONS, body)

    assert status == 200, found
    assert found["choices"][0]["text"] == "hello"


@pytest.mark.parametrize(
    ("field", "value"), [("logprobs", 1), ("top_p", 0.5), ("seed", 3), ("stop", ["x"])]
)
def test_fields_without_an_input_are_refused_by_name(client, field, value):
    status, found = client.ask(COMPLETIONS, {"model": "ensemble", "prompt": "x", field: value})

    assert (status, found["error"]["param"]) == (400, field)


def scored(text_input, random_seed=None, return_log_probs=None):
    """Answer as TensorRT-LLM's models: the score of a text only if it is asked for."""
    seed = 0 if random_seed is None else int(random_seed[0])
    asked = return_log_probs is not None and bool(return_log_probs[0])
    scores = np.array([-1 / (1 + seed)] if asked else [], np.float32)
    text = f"{seed} {'with' if asked else 'without'} a score"
    return {"text_output": np.array([text.encode()], object), "cum_log_probs": scores}


def test_an_output_with_the_name_of_a_score_may_have_any_type(open_server, connect):
    def answer(text_input):
        words = np.array([b"likely"], object)
        return {"text_output": text_input, "cum_log_probs": words}

    server, port = open_server()
    tensors = {"text_output": ("BYTES", [1]), "cum_log_probs": ("BYTES", [1])}
    server.bind("worded", answer, inputs={"text_input": ("BYTES", [1])}, outputs=tensors)

    status, found = connect(port).ask(COMPLETIONS, {"model": "worded", "prompt": "x"})

    assert status == 200, found
    assert found["choices"][0]["text"] == "x"


def test_the_best_of_several_texts_is_that_with_the_largest_sum_of_log_probabilities(
    open_server, connect
):
    server, port = open_server()
    server.bind(
        "scored",
        scored,
        inputs={
            "text_input": ("BYTES", [1]),
            "random_seed": ("INT64", [1]),
            "return_log_probs": ("BOOL", [1]),
        },
        outputs={"text_output": ("BYTES", [1]), "cum_log_probs": ("FP32", [-1])},
    )

    def ask(**fields):
        return connect(port).ask(
            COMPLETIONS, {"model": "scored", "prompt": "x", "seed": 1, **fields}
        )

    status, found = ask(best_of=3, n=2)
    assert status == 200, found
    assert [each["text"] for each in found["choices"]] == ["3 with a score", "2 with a score"]
    assert ask()[1]["choices"][0]["text"] == "1 without a score"
    status, found = ask(logprobs=1)
    assert (status, found["error"]["param"]) == (400, "logprobs")
