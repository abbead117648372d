"""Functions of triton_python_backend_utils that need a server: what they refuse without one."""

import asyncio

import pytest
import triton_python_backend_utils as pb_utils


def request():
    return pb_utils.InferenceRequest(model_name="n", inputs=[], requested_output_names=["y"])


def test_calls_outside_of_a_model_raise_an_error():
    async def call_and_await():
        await request().async_exec()

    for call in (
        lambda: pb_utils.Logger.log_info("x"),
        pb_utils.get_model_dir,
        lambda: pb_utils.MetricFamily("n", "d", pb_utils.MetricFamily.COUNTER),
        lambda: request().exec(),
        lambda: asyncio.run(call_and_await()),
        lambda: pb_utils.load_model("n"),
    ):
        with pytest.raises(pb_utils.TritonModelException, match="only be used by a model"):
            call()


def test_wrong_arguments_of_functions_raise():
    for call in (
        lambda: pb_utils.Logger.log_info(3),
        lambda: pb_utils.Logger.log("x", 3),
        lambda: pb_utils.Logger.log(),
    ):
        with pytest.raises(TypeError):
            call()
    for call in (
        lambda: pb_utils.load_model(3),
        lambda: pb_utils.load_model("n", {}),
        lambda: pb_utils.load_model("n", files={3: b""}),
        lambda: pb_utils.unload_model(None),
        lambda: pb_utils.is_model_ready("n", 1),
        lambda: pb_utils.MetricFamily(1, "d", pb_utils.MetricFamily.COUNTER),
        lambda: pb_utils.MetricFamily("n", None, pb_utils.MetricFamily.COUNTER),
        lambda: pb_utils.MetricFamily("n", "d", 0),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(pb_utils.TritonModelException) as error:
        pb_utils.load_model("n", files=["x"])
    assert str(error.value) == (
        "failed to load model 'n', files should be a dictionary of file paths and file contents"
    )
    assert pb_utils.Logger.LogLevel.VERBOSE == pb_utils.Logger.VERBOSE == 3
