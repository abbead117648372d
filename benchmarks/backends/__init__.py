"""Compare the server with a bare framework: python -m benchmarks.backends

__main__.py   the table
case.py       Case: a model, and how the framework runs it
loop.py       a loop over the framework, in a separate process
serving.py    a server for the models of a folder, on one core
onnx.py pytorch.py …   the CASES of one backend each; a new backend is a file here and a name in case.py
gpu.py        PyTorch on a GPU compared with bare loops, a separate program
forests.py    backend-fil compared with the libraries that train forests, a separate program
"""
