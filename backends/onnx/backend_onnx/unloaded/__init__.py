"""Read what an ONNX file says of itself without loading it, for `core check`.

file ─► wire ─► facts ─► static_check, which compares them with config.pbtxt and the installed ONNX Runtime.
"""
