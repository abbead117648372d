"""What a server costs beside its framework: python -m benchmarks.backends

__main__.py   the table
case.py       Case: a model, and the framework's own way to run it
loop.py       the framework's own loop, in a process of its own
serving.py    a server for the models of a folder, on one core
onnx.py pytorch.py …   one backend each: CASES; a new one is a file here and a word in case.py
gpu.py        PyTorch on a GPU beside bare loops, a program of its own
forests.py    backend-fil's walk beside the libraries that train forests, a program of its own
"""
