"""Streaming, ts.handler_utils.utils of torchserve; model.py replaces its function first."""


def send_intermediate_predict_response(ret, req_id_map, message, code, context=None):
    raise RuntimeError("only a handler in model.py can stream")
