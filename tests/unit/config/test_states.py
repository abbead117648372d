"""The initial states of a sequence, from config.pbtxt and the files beside it."""

import numpy as np
import pytest

from core import dtypes
from core.config import parse_text, signature_of
from core.errors import CoreError, Kind
from core.native import strings


def states(folder, text, batch=8):
    config = parse_text(f'name: "m" max_batch_size: {batch} sequence_batching {{ {text} }}', "test")
    return signature_of(config, folder).states


def state(dims="[ 3 ]", initial="", kind="FP32", names='input_name: "i" output_name: "o"'):
    if initial:
        given_dims, data = initial
        initial = (
            f'initial_state {{ name: "first" data_type: TYPE_{kind} dims: {given_dims} {data} }}'
        )
    return f"state {{ {names} data_type: TYPE_{kind} dims: {dims} {initial} }}"


def refusal(folder, text):
    with pytest.raises(CoreError) as error:
        states(folder, text)
    return error.value


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "initial_state").mkdir()
    return tmp_path


@pytest.mark.parametrize(("batch", "shape"), [(8, (1, 3)), (0, (3,))])
def test_a_state_begins_with_zeros(tmp_path, batch, shape):
    found = states(tmp_path, state(), batch)["o"]

    assert (found.input_name, found.dtype, found.dims) == ("i", dtypes.FP32, (3,))
    assert found.initial.shape == shape
    assert not found.initial.array.any()
    assert not found.initial.array.flags.writeable


def test_text_begins_empty(tmp_path):
    assert states(tmp_path, state("[ 2 ]", kind="STRING"))["o"].initial.array.tolist() == [
        [b"", b""]
    ]


def test_a_variable_dimension_begins_with_one_element(tmp_path):
    assert states(tmp_path, state("[ -1, 4 ]"))["o"].initial.shape == (1, 1, 4)


def test_an_initial_state_gives_the_size_of_a_variable_dimension(tmp_path):
    found = states(tmp_path, state("[ -1 ]", ("[ 5 ]", "zero_data: true")))["o"]

    assert found.initial.array.tolist() == [[0, 0, 0, 0, 0]]


def test_a_file_holds_the_first_values(folder):
    values = np.array([1, 2, 3], np.float32)
    (folder / "initial_state" / "first.bin").write_bytes(values.tobytes())

    found = states(folder, state("[ -1 ]", ("[ 3 ]", 'data_file: "first.bin"')))["o"]

    assert found.initial.array.tolist() == [[1, 2, 3]]


def test_a_file_holds_text_with_its_lengths(folder):
    raw = strings.encode(np.array([b"a", b"bcd"], object))
    (folder / "initial_state" / "first").write_bytes(raw)

    found = states(folder, state("[ 2 ]", ("[ 2 ]", 'data_file: "first"'), "STRING"))["o"]

    assert found.initial.array.tolist() == [[b"a", b"bcd"]]


def test_a_missing_file_is_named(folder):
    error = refusal(folder, state("[ 3 ]", ("[ 3 ]", 'data_file: "none"')))

    assert error.kind is Kind.INTERNAL
    assert error.message == (
        f"failed to open text file for read {folder}/initial_state/none: No such file or directory; "
        "it is the initial_state data_file for state 'i' of model 'm'"
    )


@pytest.mark.parametrize(("size", "has"), [(11, "only has 11"), (13, "has 13")])
def test_a_file_of_the_wrong_size_is_refused(folder, size, has):
    (folder / "initial_state" / "first").write_bytes(bytes(size))

    assert refusal(folder, state("[ 3 ]", ("[ 3 ]", 'data_file: "first"'))).message == (
        "initial_state setting expects 12 bytes, but the data provided from first "
        f"{has} bytes, for state 'i' of model 'm'"
    )


@pytest.mark.parametrize(("raw", "found"), [(b"", "0, with 0"), (bytes(11), "2, with 3")])
def test_a_file_without_as_many_strings_is_refused(folder, raw, found):
    (folder / "initial_state" / "first").write_bytes(raw)

    text = state("[ 2 ]", ("[ 2 ]", 'data_file: "first"'), "STRING")
    assert refusal(folder, text).message == (
        f"initial_state setting expects 2 strings, but the data provided from first has {found} bytes "
        "behind them, for state 'i' of model 'm'; each string has its length before it, as 4 bytes, "
        "little endian"
    )


def test_a_link_out_of_the_folder_is_refused(folder, tmp_path_factory):
    secret = tmp_path_factory.mktemp("other") / "secret"
    secret.write_bytes(bytes(12))
    (folder / "initial_state" / "first").symlink_to(secret)

    error = refusal(folder, state("[ 3 ]", ("[ 3 ]", 'data_file: "first"')))

    assert error.kind is Kind.UNSUPPORTED
    assert "is outside of the folder 'initial_state' of its model" in error.message


def test_a_state_that_no_memory_can_hold_is_refused(folder):
    most = 2**62

    error = refusal(folder, state(f"[ {most}, {most} ]"))

    assert error.kind is Kind.INVALID
    assert error.message == (
        f"state 'i' of model 'm' has the shape [1, {most}, {most}], too large for memory"
    )
