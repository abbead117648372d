"""The classification extension."""

import numpy as np
import pytest
from conformance.protocol import (
    data_of,
    grpc_input,
    grpc_output,
    http_input,
    http_output,
    outputs_of,
    refused,
    tensor,
)

SCORES = [0.125, 0.5, 0.25, 0.0625, 0.375]


def classify(server, rows, outputs):
    return server.infer(
        "classifier", {"inputs": [tensor("INPUT0", rows, [len(rows), 5])], "outputs": outputs}
    )


def wanted(name, count):
    return {"name": name, "parameters": {"classification": count}}


def test_top_classes_come_as_score_index_and_label(basic):
    output = outputs_of(classify(basic, [SCORES], [wanted("LABELLED", 2)]))["LABELLED"]
    assert output["datatype"] == "BYTES"
    assert output["shape"] == [1, 2]
    assert output["data"] == ["0.500000:1:bee", "0.375000:4:elk"]


def test_without_labels_a_class_is_score_and_index(basic):
    response = classify(basic, [SCORES], [wanted("BARE", 3)])
    assert data_of(response, "BARE") == ["0.500000:1", "0.375000:4", "0.250000:2"]


def test_more_classes_than_there_are_gives_all(basic):
    output = outputs_of(classify(basic, [SCORES], [wanted("LABELLED", 9)]))["LABELLED"]
    assert output["shape"] == [1, 5]
    assert output["data"][-1] == "0.062500:3:dog"


def test_zero_classes_gives_the_tensor_itself(basic):
    output = outputs_of(classify(basic, [SCORES], [wanted("LABELLED", 0)]))["LABELLED"]
    assert output["datatype"] == "FP32"
    assert output["data"] == SCORES


def test_negative_number_of_classes_is_refused(basic):
    refused(classify(basic, [SCORES], [wanted("LABELLED", -1)]))


def test_every_row_of_the_batch_is_classified(basic):
    rows = [SCORES, SCORES[::-1], [0, 0, 0, 1, 0]]
    output = outputs_of(classify(basic, rows, [wanted("LABELLED", 1)]))["LABELLED"]
    assert output["shape"] == [3, 1]
    assert output["data"] == ["0.500000:1:bee", "0.500000:3:dog", "1.000000:3:dog"]


def test_classified_and_plain_outputs_may_be_mixed(basic):
    found = outputs_of(classify(basic, [SCORES], [wanted("LABELLED", 1), {"name": "BARE"}]))
    assert found["LABELLED"]["data"] == ["0.500000:1:bee"]
    assert found["BARE"]["data"] == SCORES


def test_equal_scores_come_in_the_order_of_their_index(basic):
    output = outputs_of(classify(basic, [[0, 1, 0, 1, 0]], [wanted("BARE", 2)]))["BARE"]
    assert sorted(output["data"]) == ["1.000000:1", "1.000000:3"]


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_clients_get_classes_as_bytes(request, protocol):
    client = request.getfixturevalue(protocol)
    make_input, make_output = (
        (http_input, http_output) if protocol == "http" else (grpc_input, grpc_output)
    )
    result = client.infer(
        "classifier",
        [make_input("INPUT0", np.array([SCORES], np.float32))],
        outputs=[make_output("LABELLED", class_count=2)],
    )
    assert result.as_numpy("LABELLED").tolist() == [[b"0.500000:1:bee", b"0.375000:4:elk"]]


def test_negative_scores_are_ordered_by_value(basic):
    response = classify(basic, [[-1, -5, -0.5, -2, -3]], [wanted("LABELLED", 2)])
    assert data_of(response, "LABELLED") == ["-0.500000:2:cat", "-1.000000:0:ant"]
