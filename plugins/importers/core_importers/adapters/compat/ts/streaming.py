"""ts.handler_utils.utils of torchserve: streaming.

model.py replaces the function before it imports the handler.
"""


def send_intermediate_predict_response(ret, req_id_map, message, code, context=None):
    raise RuntimeError("only a handler in model.py can stream")
