"""Pipelines of three kinds, ragged batches, outputs of different shapes, failures, instances."""

import io
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from backend_dali.conformance import save
from backend_dali.tensors import DTYPES
from nvidia.dali import fn, types
from nvidia.dali.pipeline import Pipeline, pipeline_def

from core.errors import CoreError

ENCODED = {"dtype": types.UINT8, "ndim": 1}


def png(height, width, seed=0):
    """Return a picture of noise: the file as an array, and its pixels."""
    from PIL import Image

    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return np.frombuffer(file.getvalue(), np.uint8), pixels


def pictures(**options):
    """Return the definition of a pipeline that decodes, resizes and normalises."""

    @pipeline_def(batch_size=4, num_threads=1, device_id=None, **options)
    def pipeline():
        encoded = fn.external_source(name="encoded", **ENCODED)
        pixels = fn.resize(fn.decoders.image(encoded), resize_x=16, resize_y=12)
        return fn.crop_mirror_normalize(
            pixels, mean=[1, 2, 3], std=[4, 5, 6], dtype=types.FLOAT, output_layout="CHW"
        )

    return pipeline


def bare(pipeline, **inputs):
    """Return the samples of each output of DALI's own loop."""
    pipeline.build()
    for name, samples in inputs.items():
        pipeline.feed_input(name, samples)
    return [[np.array(each.at(i)) for i in range(len(each))] for each in pipeline.run()]


PYTHON = """
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.triton import autoserialize
from sizes import HEIGHT

@autoserialize
@pipeline_def(batch_size=4, num_threads=1, device_id=None, output_dtype=types.FLOAT, output_ndim=3)
def pipeline():
    encoded = fn.external_source(name="encoded", dtype=types.UINT8, ndim=1)
    pixels = fn.resize(fn.decoders.image(encoded), resize_x=16, resize_y=HEIGHT)
    return fn.crop_mirror_normalize(
        pixels, mean=[1, 2, 3], std=[4, 5, 6], dtype=types.FLOAT, output_layout="CHW"
    )
"""


def fill_python(folder):
    (folder / "dali.py").write_text(PYTHON)
    (folder / "sizes.py").write_text("HEIGHT = 12\n")


def fill_serialized(folder):
    made = pictures(output_dtype=types.FLOAT, output_ndim=3)()
    made.serialize(filename=str(folder / "model.dali"))


def fill_old_form(folder):
    """Without the decorator, as pipelines were written before."""
    made = Pipeline(
        batch_size=4, num_threads=1, device_id=None, output_dtype=types.FLOAT, output_ndim=3
    )
    with made:
        encoded = fn.external_source(name="encoded", **ENCODED)
        pixels = fn.resize(fn.decoders.image(encoded), resize_x=16, resize_y=12)
        made.set_outputs(
            fn.crop_mirror_normalize(
                pixels, mean=[1, 2, 3], std=[4, 5, 6], dtype=types.FLOAT, output_layout="CHW"
            )
        )
    made.serialize(filename=str(folder / "model.dali"))


@pytest.mark.parametrize("fill", [fill_python, fill_serialized, fill_old_form])
def test_a_pipeline_of_pictures_gives_what_dali_gives(serve, fill):
    model = serve(fill, 'backend: "dali" output { name: "pixels" dims: [ 3, 12, 16 ] }')
    encoded, _ = png(20, 30)

    answer = model(encoded=encoded[None])["pixels"]

    assert model.config.max_batch_size == 4
    ((wanted,),) = bare(pictures()(), encoded=[encoded])
    assert answer.shape == (1, 3, 12, 16)
    np.testing.assert_allclose(answer[0], wanted, rtol=1e-6, atol=1e-6)


def test_requests_of_different_shapes_share_a_batch(serve):
    config = """backend: "dali" max_batch_size: 4
        input { name: "encoded" data_type: TYPE_UINT8 dims: [ -1 ] allow_ragged_batch: true }
        output { name: "pixels" data_type: TYPE_FP32 dims: [ 3, 12, 16 ] }
        dynamic_batching { max_queue_delay_microseconds: 500000 preferred_batch_size: [ 3 ] }"""
    model = serve(fill_serialized, config)
    files = [png(10 + i, 20, i)[0] for i in range(3)]

    answers = model.together(*({"encoded": each[None]} for each in files))

    (wanted,) = bare(pictures()(), encoded=files)
    for answer, pixels in zip(answers, wanted, strict=True):
        np.testing.assert_allclose(answer["pixels"][0], pixels, rtol=1e-6, atol=1e-6)


def fill_decoder(folder):
    @pipeline_def(
        batch_size=4, num_threads=1, device_id=None, output_dtype=types.UINT8, output_ndim=3
    )
    def pipeline():
        return fn.decoders.image(fn.external_source(name="encoded", **ENCODED), name="pixels")

    pipeline().serialize(filename=str(folder / "model.dali"))


RAGGED = """backend: "dali" max_batch_size: 4
    input { name: "encoded" data_type: TYPE_UINT8 dims: [ -1 ] allow_ragged_batch: true }
    output { name: "pixels" data_type: TYPE_UINT8 dims: [ -1, -1, 3 ] }
    dynamic_batching { max_queue_delay_microseconds: 500000 preferred_batch_size: [ 3 ] }"""


def test_each_request_gets_outputs_of_its_own_shape(serve):
    model = serve(fill_decoder, RAGGED)
    files = [png(4 + i, 5, i) for i in range(3)]

    answers = model.together(*({"encoded": file[None]} for file, _ in files))

    for answer, (_, pixels) in zip(answers, files, strict=True):
        np.testing.assert_array_equal(answer["pixels"][0], pixels)


def test_only_requests_with_the_fault_fail(serve):
    model = serve(fill_decoder, RAGGED)
    good, pixels = png(4, 5)
    bad = np.frombuffer(b"no picture", np.uint8)

    first, failed, last = model.together(*({"encoded": each[None]} for each in (good, bad, good)))

    np.testing.assert_array_equal(first["pixels"][0], pixels)
    np.testing.assert_array_equal(last["pixels"][0], pixels)
    assert isinstance(failed, CoreError)
    assert failed.message.startswith("model 'm': nvidia.dali.fn.decoders.image: ")
    assert "\n" not in failed.message and "C++" not in failed.message


def test_rows_of_one_request_with_different_shapes_are_an_error(serve):
    def fill(folder):
        save(folder, lambda x: fn.slice(x, 0, fn.cast(x[0], dtype=types.INT32), axes=[0]), x=1)

    model = serve(fill, 'backend: "dali" output { name: "y" }')

    with pytest.raises(
        CoreError, match=r"rows of output 'y' have different shapes \(\[1\], \[2\]\)"
    ):
        model(x=np.array([[1, 0, 0], [2, 0, 0]], np.float32))
    assert model(x=np.array([[2, 5, 0]], np.float32))["y"].tolist() == [[2, 5]]


def test_elements_of_the_outer_dimension_become_rows(serve):
    config = """backend: "dali" max_batch_size: 4
        input { name: "x" data_type: TYPE_FP32 dims: [ 2, 3 ] }
        output { name: "y" data_type: TYPE_FP32 dims: [ 3 ] }
        parameters { key: "split_along_outer_axis" value { string_value: "y" } }"""

    @pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def pipeline():
        return fn.external_source(name="x", dtype=types.FLOAT, ndim=2) * 2.0

    model = serve(lambda folder: pipeline().serialize(filename=str(folder / "model.dali")), config)
    x = np.arange(12, dtype=np.float32).reshape(2, 2, 3)

    assert model(x=x)["y"].tolist() == (2 * x).reshape(4, 3).tolist()


@pytest.mark.parametrize("number", DTYPES)
def test_datatypes(serve, number):
    dtype = DTYPES[number].numpy
    options = {"dtype": types.DALIDataType(number), "ndim": 2}

    @pipeline_def(
        batch_size=4,
        num_threads=1,
        device_id=None,
        output_dtype=options["dtype"],
        output_ndim=2,
    )
    def pipeline():
        return fn.copy(fn.external_source(name="x", **options), name="y")

    model = serve(lambda folder: pipeline().serialize(filename=str(folder / "model.dali")))
    x = np.array([[[0, 1], [1, 1]]], dtype)

    answer = model(x=x)["y"]

    assert answer.dtype == x.dtype and answer.tolist() == x.tolist()


def test_a_sample_without_dims_is_one_element(serve):
    def fill(folder):
        @pipeline_def(
            batch_size=4, num_threads=1, device_id=None, output_dtype=types.FLOAT, output_ndim=0
        )
        def pipeline():
            return fn.copy(fn.external_source(name="x", dtype=types.FLOAT, ndim=0), name="y")

        pipeline().serialize(filename=str(folder / "model.dali"))

    model = serve(fill)

    assert list(model.config.input[0].dims) == [1]
    assert model(x=np.array([[3], [4]], np.float32))["y"].tolist() == [[3], [4]]


def test_instances_answer_at_once(serve):
    config = """backend: "dali" max_batch_size: 4 instance_group { count: 3 }
        parameters { key: "num_threads" value { string_value: "2" } }"""
    model = serve(lambda folder: save(folder, lambda x: fn.copy(x * 2.0, name="y"), x=1), config)
    arrays = [np.full((1 + i % 4, 3), i, np.float32) for i in range(60)]

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda x: model(x=x)["y"], arrays))

    for x, answer in zip(arrays, answers, strict=True):
        np.testing.assert_array_equal(answer, 2 * x)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("raise OSError('no disk')", r"cannot load '.*dali\.py': OSError: no disk"),
        ("x = 1", r"Precisely one autoserialize function must exist"),
        ("import os; os._exit(3)", r"its process ended with status 3"),
    ],
)
def test_a_failing_python_file_is_an_error_with_its_last_line(serve, text, error):
    with pytest.raises(CoreError, match=error):
        serve(lambda folder: (folder / "dali.py").write_text(text))


def test_a_python_file_runs_anew_after_a_change(serve, tmp_path):
    model = serve(fill_python, 'backend: "dali" output { name: "pixels" dims: [ 3, -1, 16 ] }')
    encoded, _ = png(20, 30)
    file = tmp_path / "models" / "m" / "1" / "dali.py"
    file.write_text(PYTHON.replace("resize_y=HEIGHT", "resize_y=HEIGHT + 1"))

    model.served.load("m")

    assert model(encoded=encoded[None])["pixels"].shape == (1, 3, 13, 16)
