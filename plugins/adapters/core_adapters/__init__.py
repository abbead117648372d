"""Adapters that serve other models as TritonPythonModel, in the process that runs the Python model.

Each module is imported on first use and runs on Python 3.9 and later. `adapter.find` runs in the server.
"""
