"""Models for these tests, and the rest of what several of them need."""

import numpy as np

X = np.array([[1, 2, 3]], np.float32)
GPU = "preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_GPU)"
FREE = 'parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "no" } }'
TWICE = """
def execute(self, requests):
    return [respond(on_gpu("y", look(x) * 2 + (0 if x.is_cpu() else 100))) for x in map(x_of, requests)]
"""
SAME = """
def execute(self, requests):
    return [respond(pb_utils.Tensor.from_dlpack("y", x_of(request))) for request in requests]
"""
VIEW = """
def execute(self, requests):
    views = [pb_utils.Tensor.from_dlpack("y", x_of(request).to_dlpack()) for request in requests]
    return [respond(view) for view in views]
"""
MANY = """
def execute(self, requests):
    for request in requests:
        sender = request.get_response_sender()
        for i in range(3):
            sender.send(respond(on_gpu("y", look(x_of(request)) + i)))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
CALLS = """
def execute(self, requests):
    y = call("twice", on_gpu("x", look(x_of(requests[0]))), PREFERRED)
    where = 0 if y.is_cpu() else 1000
    return [respond(pb_utils.Tensor("y", look(y) + where))]
"""
TAKES_ONE = f"""
def execute(self, requests):
    asked = pb_utils.InferenceRequest(model_name="many", requested_output_names=["y"],
                                      inputs=[x_of(requests[0])], {GPU})
    for response in asked.exec(decoupled=True):
        y = response.output_tensors()[0]
        return [respond(pb_utils.Tensor("y", look(y) + (0 if y.is_cpu() else 1000)))]
"""
HERE = 'parameters { key: "EXECUTION_MODE" value { string_value: "thread" } }'
MODELS = {
    "twice": TWICE,
    "other": (TWICE, FREE + " dynamic_batching { max_queue_delay_microseconds: 1000 }"),
    "here": (TWICE, FREE + HERE),
    "forced": (TWICE, "version_policy { latest { } }"),
    "same": SAME,
    "view": VIEW,
    "many": (MANY, FREE + " model_transaction_policy { decoupled: true }"),
    "calls": CALLS.replace("PREFERRED", GPU),
    "calls_plainly": CALLS.replace("PREFERRED", ""),
    "calls_forced": CALLS.replace("PREFERRED", GPU).replace("twice", "forced"),
    "calls_nobody": CALLS.replace("PREFERRED", GPU).replace("twice", "no"),
    "calls_same": CALLS.replace("PREFERRED", GPU).replace("twice", "same"),
    "takes_one": TAKES_ONE,
}
ENSEMBLES = {
    "both": ("twice", "other"),
    "again": ("twice", "twice"),
    "to_here": ("twice", "here"),
    "from_here": ("here", "twice"),
    "to_forced": ("twice", "forced"),
    "to_same": ("twice", "same"),
    "to_view": ("twice", "view"),
    "stream": ("many", "twice"),
}
