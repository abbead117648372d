"""ONNX files in the store, as sessions of ONNX Runtime."""

from bentoml.models import get, saved

__all__ = ["get", "load_model"]


def load_model(bento_model, *, providers=None, session_options=None):
    import onnxruntime

    return onnxruntime.InferenceSession(
        saved(bento_model),
        sess_options=session_options,
        providers=providers or ["CPUExecutionProvider"],
    )
