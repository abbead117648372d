"""Models that call models, and the surface of triton_python_backend_utils."""

import json

import numpy as np
import pytest
from conformance.catalog import identity
from conformance.protocol import grpc_input, http_input, refused, tensor, texts

MODELS = [
    "bls",
    "bls_async",
    "add_sub_int32",
    "faulty",
    "versioned_all",
    "repeat",
    "params_echo",
    "utils_probe",
    identity("identity_bytes", "BYTES"),
]


@pytest.fixture(scope="module")
def server(launch):
    return launch(MODELS)


def call(server, mode, values=(1, 2, 3), model="bls"):
    result = server.http_client().infer(
        model,
        [
            http_input("MODE", texts(mode), "BYTES"),
            http_input("INPUT0", np.array(values, np.int32)),
        ],
    )
    text = result.as_numpy("TEXT") if model == "bls" else None
    return result.as_numpy("OUTPUT0").tolist(), text if text is None else text[0].decode()


def test_synchronous_call_gives_the_other_models_answer(server):
    assert call(server, "sync") == ([3, 6, 9], "sync")


def test_call_gives_only_the_requested_outputs(server):
    assert call(server, "one_output")[1] == "OUTPUT0"


def test_calls_may_follow_each_other(server):
    assert call(server, "chain", [1, 2])[0] == [243, 486]


def test_call_of_an_unknown_model_raises(server):
    text = call(server, "unknown")[1]
    assert text.startswith("exception") and "no_such_model" in text


def test_call_with_a_wrong_input_is_an_error(server):
    assert "INPUT7" in call(server, "wrong_input")[1]


def test_call_for_a_wrong_output_is_an_error(server):
    assert "OUTPUT7" in call(server, "wrong_output")[1]


def test_error_of_the_called_model_is_given_to_the_caller(server):
    text = call(server, "fails")[1]
    assert text.startswith("True") and "error of the response" in text


def test_call_of_one_version(server):
    assert call(server, "version_2")[0] == [2]


def test_call_without_version_takes_the_latest(server):
    assert call(server, "latest")[0] == [3]


def test_decoupled_call_gives_every_response(server):
    assert call(server, "decoupled", [4, 5, 6]) == ([4, 5, 6], "decoupled")


def test_error_in_a_decoupled_call_does_not_hide_the_other_responses(server):
    numbers, text = call(server, "decoupled_error", [4, 5, 6])
    assert numbers == [4, 6]
    assert text in ("", "error at 1")


def test_decoupled_model_needs_a_decoupled_call(server):
    text = call(server, "decoupled_as_one")[1]
    assert text.startswith("exception") or text == "error: True"


def test_ordinary_model_may_be_called_as_decoupled(server):
    assert call(server, "one_as_decoupled") == ([3, 6, 9], "1")


def test_fields_of_a_call_reach_the_called_model(server):
    seen = json.loads(call(server, "request_fields")[1])
    assert seen["request_id"] == "from bls"
    assert seen["correlation_id"] == 17
    assert seen["flags"] == 1
    assert seen["timeout"] == 123456
    assert seen["parameters"] == {"word": "w", "number": 3, "truth": True}


def test_strings_pass_through_a_call(server):
    assert call(server, "bytes")[1] == "a/\u2603/"


def test_model_readiness_can_be_asked(server):
    assert call(server, "is_ready")[0] == [1, 1, 0, 0]


def test_asynchronous_calls_run_together(server):
    assert call(server, "gather", model="bls_async")[0] == [4, 8, 12]


def test_asynchronous_decoupled_call(server):
    assert call(server, "decoupled", [7, 8], model="bls_async")[0] == [7, 8]


def test_calls_count_in_the_statistics_of_the_called_model(server):
    before = server.stats("add_sub_int32")["inference_count"]
    call(server, "chain")
    assert server.stats("add_sub_int32")["inference_count"] - before == 5


def test_calling_model_works_over_grpc(server):
    result = server.grpc_client().infer(
        "bls",
        [grpc_input("MODE", texts("sync"), "BYTES"), grpc_input("INPUT0", np.array([5], np.int32))],
    )
    assert result.as_numpy("OUTPUT0").tolist() == [15]


def test_concurrent_calls_get_their_own_answers(server):
    import concurrent.futures

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda number: call(server, "sync", [number])[0], range(40)))
    assert found == [[3 * number] for number in range(40)]


def test_unknown_python_attribute_is_an_error_of_the_request(server):
    assert "AttributeError" in refused(
        server.infer(
            "bls",
            {
                "inputs": [
                    tensor("MODE", ["nothing_like_it"], datatype="BYTES"),
                    tensor("INPUT0", [1], datatype="INT32"),
                ]
            },
        ),
        500,
    )


def probe(server, what):
    result = server.http_client().infer("utils_probe", [http_input("WHAT", texts(what), "BYTES")])
    return json.loads(result.as_numpy("TEXT")[0])


@pytest.mark.parametrize(
    "what,expected",
    [
        ("configs", ["TYPE_STRING", "TYPE_STRING", None]),
        ("types", ["bool", "uint8", "int64", "float16", "float32", "object"]),
        ("dlpack", ["U", [0, 1, 2, 3], [0, 1, 2, 3]]),
        ("not_contiguous", [[0, 3], [1, 4], [2, 5]]),
        ("strings", ["a", "\u2603"]),
        ("fixed_bytes", ["ab", "c"]),
        ("serialized", [[2, 0, 0, 0, 97, 98, 0, 0, 0, 0], ["ab", ""]]),
        ("errors", ["text", True, True]),
        ("error_codes", [True] * 8),
        ("response", [False, 1, "T", True]),
        ("constants", [1, 2, 1]),
        ("directory", ["1", True]),
        ("logger", "logged"),
    ],
)
def test_model_side_utilities(server, what, expected):
    assert probe(server, what) == expected


def test_tensor_tells_its_name_place_and_data(server):
    assert probe(server, "tensor") == ["T", True, "int16", [[0, 1, 2], [3, 4, 5]]]


@pytest.mark.parametrize("what", ["bad_tensor", "bad_response"])
def test_wrong_arguments_raise_in_the_model(server, what):
    assert "exception" in probe(server, what)


def test_line_that_a_model_logs_is_in_the_log_of_the_server(server):
    probe(server, "logger")
    assert "a line of the model" in server.log_text()
    assert "initialized for the conformance suite" in server.log_text()
