import asyncio

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Calls other models with async_exec."""

    async def execute(self, requests):
        responses = []
        for request in requests:
            mode = pb_utils.get_input_tensor_by_name(request, "MODE").as_numpy()[0].decode()
            values = pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy()
            numbers = await getattr(self, "_" + mode)(values)
            responses.append(
                pb_utils.InferenceResponse(
                    [pb_utils.Tensor("OUTPUT0", np.asarray(numbers, np.int32))]
                )
            )
        return responses

    @staticmethod
    async def _gather(values):
        """Four calls at a time; the answers are added up."""
        calls = [
            pb_utils.InferenceRequest(
                model_name="add_sub_int32",
                requested_output_names=["OUTPUT0"],
                inputs=[pb_utils.Tensor("INPUT0", values), pb_utils.Tensor("INPUT1", values * 0)],
            )
            for _ in range(4)
        ]
        answers = await asyncio.gather(*[call.async_exec() for call in calls])
        return sum(
            pb_utils.get_output_tensor_by_name(answer, "OUTPUT0").as_numpy() for answer in answers
        )

    @staticmethod
    async def _decoupled(values):
        call = pb_utils.InferenceRequest(
            model_name="repeat",
            requested_output_names=["OUT"],
            inputs=[pb_utils.Tensor("IN", values)],
        )
        numbers = []
        for response in await call.async_exec(decoupled=True):
            if response.output_tensors():
                numbers.append(pb_utils.get_output_tensor_by_name(response, "OUT").as_numpy()[0])
        return numbers
