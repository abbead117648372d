"""Input data: random, zero, perf_analyzer's JSON, a folder."""

import base64
import json

import numpy as np
import pytest
from core_bench.data.samples import samples_of
from core_bench.data.tensors import DTYPES, from_numbers, pack, unpack
from core_bench.model.description import ModelInfo, TensorInfo
from core_bench.plan import Side

from core.errors import CoreError


def info(*inputs, batch=0, **more):
    return ModelInfo("m", "1", [TensorInfo(*each) for each in inputs], (), batch, **more)


def side(**more):
    return Side("m", "m", "", **more)


@pytest.mark.parametrize("datatype", [*DTYPES, "BYTES"])
def test_random_tensors_have_the_size_of_their_shape_and_differ(datatype):
    found = samples_of(info(("x", datatype, (3, 5)), batch=4), side(batch=2, different=4))

    assert len(found.requests) == 4
    for each in found.requests:
        value = each["x"]
        assert value.shape == (2, 3, 5)
        assert value.array().shape == (2, 3, 5)
        assert len(value.elements()) == 30
    if datatype != "BOOL":
        assert len({each["x"].raw for each in found.requests}) == 4


def test_the_same_seed_makes_the_same_requests():
    made = [samples_of(info(("x", "FP32", (8,))), side(seed=seed)) for seed in (1, 1, 2)]

    assert made[0].requests == made[1].requests != made[2].requests


def test_zero_and_strings():
    zero = samples_of(info(("x", "INT8", (2,)), ("s", "BYTES", (1,))), side(input_data=("zero",)))
    given = samples_of(info(("s", "BYTES", (2,))), side(string_data="ab"))
    random = samples_of(info(("s", "BYTES", (1,))), side(string_length=7))

    assert (zero.requests[0]["x"].raw, zero.requests[0]["s"].raw) == (b"\0\0", b"\0\0\0\0")
    assert given.requests[0]["s"].elements() == ["ab", "ab"]
    assert all(len(each["s"].elements()[0]) == 7 for each in random.requests)


def test_a_dimension_of_any_size_needs_a_shape():
    model = info(("x", "FP32", (-1, 3)))

    with pytest.raises(CoreError, match="choose one, such as --shape x:1,3"):
        samples_of(model, side())

    assert samples_of(model, side(shapes={"x": (7, 3)})).requests[0]["x"].shape == (7, 3)


def test_optional_inputs_are_left_out_unless_they_have_a_shape():
    model = info(("x", "FP32", (1,)), ("y", "FP32", (1,), True))

    assert list(samples_of(model, side()).requests[0]) == ["x"]
    assert list(samples_of(model, side(shapes={"y": (1,)})).requests[0]) == ["x", "y"]


class TestJson:
    MODEL = info(("x", "INT32", (-1,)), ("s", "BYTES", (1,)), batch=4)

    def read(self, tmp_path, data, model=MODEL, **more):
        path = tmp_path / "data.json"
        path.write_text(json.dumps(data))
        return samples_of(model, side(input_data=(str(path),), **more))

    def test_lists_contents_and_base64(self, tmp_path):
        raw = base64.b64encode(np.array([5, 6], np.int32)).decode()
        steps = [
            {"x": [1, 2], "s": ["a"]},
            {"x": {"content": [[3], [4]], "shape": [2]}, "s": {"content": ["b"]}},
            {"x": {"b64": raw, "shape": [2]}, "s": {"b64": base64.b64encode(b"c").decode()}},
        ]

        found = self.read(tmp_path, {"data": steps}, shapes={"x": (2,)})

        assert [each["x"].elements() for each in found.requests] == [[1, 2], [3, 4], [5, 6]]
        assert [each["s"].elements() for each in found.requests] == [["a"], ["b"], ["c"]]
        assert found.requests[0]["x"].shape == (1, 2)
        assert found.streams == [[0, 1, 2]]

    def test_a_batch_takes_the_steps_that_follow(self, tmp_path):
        steps = [{"x": [number], "s": ["a"]} for number in range(3)]

        found = self.read(tmp_path, {"data": steps}, shapes={"x": (1,)}, batch=2)

        assert [each["x"].elements() for each in found.requests] == [[0, 1], [1, 2], [2, 0]]

    def test_lists_within_data_are_streams(self, tmp_path):
        step = {"x": {"content": [1], "shape": [1]}, "s": ["a"]}

        found = self.read(tmp_path, {"data": [[step], [step, step]]})

        assert found.streams == [[0], [1, 2]]
        assert found.from_file

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            ({}, "needs a list 'data'"),
            ({"data": []}, "needs a list 'data'"),
            ({"data": [3]}, "stream 0, step 0 is no object"),
            ({"data": [{"x": [1], "s": ["a"]}, [3]]}, "mixes"),
            ({"data": [{"x": [1]}]}, "has no input 's'"),
            ({"data": [{"x": [1], "s": ["a"], "z": [1]}]}, "input 'z' that the model does not have"),
            ({"data": [{"x": [1, 2], "s": ["a"]}]}, "has 2 elements, but shape"),
            ({"data": [{"x": [1.5], "s": ["a"]}]}, "does not fit INT32"),
            ({"data": [{"x": [2**40], "s": ["a"]}]}, "does not fit INT32"),
            ({"data": [{"x": ["1"], "s": ["a"]}]}, "elements that are no numbers"),
            ({"data": [{"x": [1], "s": [1]}]}, "elements that are no strings"),
            ({"data": [{"x": {"b64": "?"}, "s": ["a"]}]}, "no base64"),
            ({"data": [{"x": {"content": [1], "shape": [1, 1]}, "s": ["a"]}]}, "does not fit input 'x'"),
            ({"data": [{"x": {"content": [1], "shape": 1}, "s": ["a"]}]}, "'shape' 1; expected a list"),
            ({"data": [{"x": {"content": [1], "shape": ["a"]}, "s": ["a"]}]}, "list of whole numbers"),
            ({"data": [{"x": {"b64": "AAAAAAA="}, "s": ["a"]}]}, "has 5 bytes, but shape"),
            ({"data": [{"x": {}, "s": ["a"]}]}, "needs a list of values"),
            ({"data": [{"x": [1], "s": ["a"]}], "validation_data": []}, "compares no outputs"),
        ],
    )  # fmt: skip
    def test_errors_name_the_place(self, tmp_path, data, message):
        with pytest.raises(CoreError, match=message):
            self.read(tmp_path, data, shapes={"x": (1,)})

    def test_a_file_that_is_no_json(self, tmp_path):
        path = tmp_path / "data.json"
        path.write_text("{")

        with pytest.raises(CoreError, match="cannot read the input data"):
            samples_of(self.MODEL, side(input_data=(str(path),)))


class TestFolder:
    MODEL = info(("x", "FP32", (2,)), ("s", "BYTES", (2,)), batch=2)

    def test_files_have_the_names_of_inputs(self, tmp_path):
        (tmp_path / "x").write_bytes(np.array([1, 2], np.float32).tobytes())
        (tmp_path / "s").write_text("a b\nc\n")

        found = samples_of(self.MODEL, side(input_data=(str(tmp_path),), batch=2))

        assert found.requests[0]["x"].elements() == [1, 2, 1, 2]
        assert found.requests[0]["s"].elements() == ["a b", "c"] * 2

    def test_a_missing_file_and_one_of_another_size(self, tmp_path):
        (tmp_path / "x").write_bytes(b"12345678")

        with pytest.raises(CoreError, match="no file 's'"):
            samples_of(self.MODEL, side(input_data=(str(tmp_path),)))
        (tmp_path / "x").write_bytes(b"123")
        (tmp_path / "s").write_text("a\nb")
        with pytest.raises(CoreError, match="has 3 bytes, but input 'x' has 2 of FP32"):
            samples_of(self.MODEL, side(input_data=(str(tmp_path),)))


def test_strings_are_packed_as_the_protocol_says():
    assert unpack(pack([b"", b"ab", b"\0"])) == [b"", b"ab", b"\0"]
    assert from_numbers("BYTES", [["ä"], ["b"]], "x") == b"\2\0\0\0\xc3\xa4\1\0\0\0b"
    assert from_numbers("BF16", [1.0], "x") == b"\x80\x3f"
