import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Declares its own inputs and outputs."""

    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [3]})
        config.add_input(
            {"name": "INPUT1", "data_type": "TYPE_FP32", "dims": [3], "optional": True}
        )
        config.add_output({"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [3]})
        config.set_max_batch_size(4)
        config.set_dynamic_batching()
        return config

    def execute(self, requests):
        return [
            pb_utils.InferenceResponse(
                [
                    pb_utils.Tensor(
                        "OUTPUT0",
                        pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy() + 1,
                    )
                ]
            )
            for request in requests
        ]
