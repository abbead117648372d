import json
import os

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Runs one small check of triton_python_backend_utils and answers JSON."""

    def initialize(self, args):
        self.config = json.loads(args["model_config"])
        self.model_dir = pb_utils.get_model_dir()
        pb_utils.Logger.log_info("initialized for the conformance suite")

    def execute(self, requests):
        responses = []
        for request in requests:
            what = pb_utils.get_input_tensor_by_name(request, "WHAT").as_numpy()[0].decode()
            try:
                found = getattr(self, "_" + what)()
            except Exception as error:
                found = {"exception": type(error).__name__, "message": str(error)}
            text = np.array([json.dumps(found).encode()], np.object_)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("TEXT", text)]))
        return responses

    def _configs(self):
        known = pb_utils.get_input_config_by_name(self.config, "WHAT")
        output = pb_utils.get_output_config_by_name(self.config, "TEXT")
        missing = pb_utils.get_input_config_by_name(self.config, "ABSENT")
        return [known["data_type"], output["data_type"], missing]

    def _types(self):
        names = ["TYPE_BOOL", "TYPE_UINT8", "TYPE_INT64", "TYPE_FP16", "TYPE_FP32", "TYPE_STRING"]
        return [np.dtype(pb_utils.triton_string_to_numpy(name)).name for name in names]

    def _tensor(self):
        tensor = pb_utils.Tensor("T", np.arange(6, dtype=np.int16).reshape(2, 3))
        return [
            tensor.name(),
            tensor.is_cpu(),
            tensor.as_numpy().dtype.name,
            tensor.as_numpy().tolist(),
        ]

    def _dlpack(self):
        source = pb_utils.Tensor("T", np.arange(4, dtype=np.float32))
        copy = pb_utils.Tensor.from_dlpack("U", source.to_dlpack())
        numpy_view = np.from_dlpack(source)
        return [copy.name(), copy.as_numpy().tolist(), numpy_view.tolist()]

    def _not_contiguous(self):
        tensor = pb_utils.Tensor("T", np.arange(6, dtype=np.int32).reshape(2, 3).T)
        return tensor.as_numpy().tolist()

    def _strings(self):
        texts = pb_utils.Tensor("T", np.array(["a", "\u2603"], np.object_)).as_numpy()
        return [item.decode() if isinstance(item, bytes) else item for item in texts]

    def _fixed_bytes(self):
        return [item.decode() for item in pb_utils.Tensor("T", np.array([b"ab", b"c"])).as_numpy()]

    def _serialized(self):
        packed = pb_utils.serialize_byte_tensor(np.array([b"ab", b""], np.object_))
        raw = packed.item() if hasattr(packed, "item") else packed
        back = pb_utils.deserialize_bytes_tensor(raw)
        return [list(raw), [item.decode() for item in back]]

    def _errors(self):
        error = pb_utils.TritonError("text", pb_utils.TritonError.NOT_FOUND)
        plain = pb_utils.TritonError("text")
        return [
            error.message(),
            error.code() == pb_utils.TritonError.NOT_FOUND,
            plain.code() == pb_utils.TritonError.INTERNAL,
        ]

    def _error_codes(self):
        return [
            hasattr(pb_utils.TritonError, name)
            for name in (
                "UNKNOWN",
                "INTERNAL",
                "NOT_FOUND",
                "INVALID_ARG",
                "UNAVAILABLE",
                "UNSUPPORTED",
                "ALREADY_EXISTS",
                "CANCELLED",
            )
        ]

    def _response(self):
        response = pb_utils.InferenceResponse(
            output_tensors=[pb_utils.Tensor("T", np.zeros(1, np.int8))]
        )
        return [
            response.has_error(),
            len(response.output_tensors()),
            pb_utils.get_output_tensor_by_name(response, "T").name(),
            pb_utils.get_output_tensor_by_name(response, "absent") is None,
        ]

    def _constants(self):
        return [
            pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START,
            pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END,
            pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL,
        ]

    def _directory(self):
        return [
            os.path.basename(os.path.dirname(__file__)),
            os.path.samefile(self.model_dir, os.path.dirname(__file__)),
        ]

    def _logger(self):
        for level in ("log_info", "log_warn", "log_error", "log_verbose"):
            getattr(pb_utils.Logger, level)("a line of the model")
        pb_utils.Logger.log("a line of the model", pb_utils.Logger.INFO)
        return "logged"

    def _bad_tensor(self):
        return pb_utils.Tensor("T", np.array([1 + 2j])).name()

    def _bad_response(self):
        return pb_utils.InferenceResponse(output_tensors=["no tensor"]).has_error()
