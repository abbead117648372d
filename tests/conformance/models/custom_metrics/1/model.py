import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Has a custom counter and gauge."""

    def initialize(self, args):
        self.counters = pb_utils.MetricFamily(
            name="conformance_items",
            description="Items that were counted",
            kind=pb_utils.MetricFamily.COUNTER,
        )
        self.gauges = pb_utils.MetricFamily(
            name="conformance_level",
            description="Level that was set",
            kind=pb_utils.MetricFamily.GAUGE,
        )
        self.counter = self.counters.Metric(labels={"model": "custom_metrics", "kind": "a"})
        self.gauge = self.gauges.Metric(labels={"model": "custom_metrics"})

    def execute(self, requests):
        responses = []
        for request in requests:
            by = float(pb_utils.get_input_tensor_by_name(request, "BY").as_numpy()[0])
            try:
                self.counter.increment(by)
            except Exception as error:
                responses.append(
                    pb_utils.InferenceResponse(error=pb_utils.TritonError(f"counter: {error}"))
                )
                continue
            self.gauge.set(by * 10)
            self.gauge.increment(-1)
            values = np.array([self.counter.value(), self.gauge.value()], np.float64)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("VALUES", values)]))
        return responses
