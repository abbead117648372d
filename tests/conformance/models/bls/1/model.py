import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Calls other models in the way that MODE names.

    OUTPUT0 has the numbers of the call's response, TEXT its description.
    """

    def execute(self, requests):
        responses = []
        for request in requests:
            mode = pb_utils.get_input_tensor_by_name(request, "MODE").as_numpy()[0].decode()
            values = pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy()
            try:
                numbers, text = getattr(self, "_" + mode)(values)
            except pb_utils.TritonModelException as error:
                numbers, text = np.array([], np.int32), f"exception: {error}"
            responses.append(
                pb_utils.InferenceResponse(
                    [
                        pb_utils.Tensor("OUTPUT0", numbers.astype(np.int32)),
                        pb_utils.Tensor("TEXT", np.array([text.encode()], np.object_)),
                    ]
                )
            )
        return responses

    @staticmethod
    def _call(model, inputs, outputs, **options):
        return pb_utils.InferenceRequest(
            model_name=model, inputs=inputs, requested_output_names=outputs, **options
        )

    @staticmethod
    def _taken(response, name):
        if response.has_error():
            raise pb_utils.TritonModelException(response.error().message())
        return pb_utils.get_output_tensor_by_name(response, name).as_numpy()

    def _add_sub(self, values, **options):
        return self._call(
            "add_sub_int32",
            [pb_utils.Tensor("INPUT0", values), pb_utils.Tensor("INPUT1", values * 2)],
            ["OUTPUT0"],
            **options,
        )

    def _sync(self, values):
        return self._taken(self._add_sub(values).exec(), "OUTPUT0"), "sync"

    def _one_output(self, values):
        response = self._add_sub(values).exec()
        names = [tensor.name() for tensor in response.output_tensors()]
        return values, ",".join(names)

    def _chain(self, values):
        for _ in range(5):
            values = self._taken(self._add_sub(values).exec(), "OUTPUT0")
        return values, "chain"

    def _unknown(self, values):
        return self._taken(self._call("no_such_model", [], ["OUTPUT0"]).exec(), "OUTPUT0"), ""

    def _wrong_input(self, values):
        call = self._call("add_sub_int32", [pb_utils.Tensor("INPUT7", values)], ["OUTPUT0"])
        return self._taken(call.exec(), "OUTPUT0"), ""

    def _wrong_output(self, values):
        call = self._call(
            "add_sub_int32",
            [pb_utils.Tensor("INPUT0", values), pb_utils.Tensor("INPUT1", values)],
            ["OUTPUT7"],
        )
        return self._taken(call.exec(), "OUTPUT7"), ""

    def _fails(self, values):
        call = self._call(
            "faulty", [pb_utils.Tensor("MODE", np.array([b"error"], np.object_))], ["OUTPUT0"]
        )
        response = call.exec()
        return values, f"{response.has_error()}: {response.error().message()}"

    def _version_2(self, values):
        call = self._call(
            "versioned_all", [pb_utils.Tensor("INPUT0", values[:1])], ["OUTPUT0"], model_version=2
        )
        return self._taken(call.exec(), "OUTPUT0"), "version"

    def _latest(self, values):
        call = self._call("versioned_all", [pb_utils.Tensor("INPUT0", values[:1])], ["OUTPUT0"])
        return self._taken(call.exec(), "OUTPUT0"), "version"

    def _decoupled(self, values):
        call = self._call("repeat", [pb_utils.Tensor("IN", values)], ["OUT"])
        numbers = []
        for response in call.exec(decoupled=True):
            if response.has_error():
                return np.array(numbers), response.error().message()
            if response.output_tensors():
                numbers.append(self._taken(response, "OUT")[0])
        return np.array(numbers), "decoupled"

    def _decoupled_error(self, values):
        call = self._call(
            "repeat",
            [
                pb_utils.Tensor("IN", values),
                pb_utils.Tensor("MODE", np.array([b"error_at:1"], np.object_)),
            ],
            ["OUT"],
        )
        numbers, errors = [], []
        for response in call.exec(decoupled=True):
            if response.has_error():
                errors.append(response.error().message())
            elif response.output_tensors():
                numbers.append(self._taken(response, "OUT")[0])
        return np.array(numbers), "; ".join(errors)

    def _decoupled_as_one(self, values):
        """A decoupled model cannot be called without decoupled=True."""
        response = self._call("repeat", [pb_utils.Tensor("IN", values)], ["OUT"]).exec()
        return values, f"error: {response.has_error()}"

    def _one_as_decoupled(self, values):
        """A model that is not decoupled gives one response to an iterator."""
        responses = list(self._add_sub(values).exec(decoupled=True))
        filled = [response for response in responses if response.output_tensors()]
        return self._taken(filled[0], "OUTPUT0"), str(len(filled))

    def _request_fields(self, values):
        call = self._call(
            "params_echo",
            [pb_utils.Tensor("INPUT0", values[:1].reshape(1, 1))],
            ["OUTPUT0"],
            request_id="from bls",
            correlation_id=17,
            flags=pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START,
            parameters={"word": "w", "number": 3, "truth": True},
            timeout=123456,
        )
        return values, self._taken(call.exec(), "OUTPUT0")[0][0].decode()

    def _bytes(self, values):
        text = np.array([["a", "\u2603", ""]], np.object_)
        call = self._call("identity_bytes", [pb_utils.Tensor("INPUT0", text)], ["OUTPUT0"])
        answer = self._taken(call.exec(), "OUTPUT0")
        return values, "/".join(item.decode() for item in answer[0])

    def _is_ready(self, values):
        known = [
            pb_utils.is_model_ready("add_sub_int32"),
            pb_utils.is_model_ready("add_sub_int32", "1"),
            pb_utils.is_model_ready("add_sub_int32", "7"),
            pb_utils.is_model_ready("no_such_model"),
        ]
        return np.array(known, np.int32), "ready"
