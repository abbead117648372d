"""What stands in for Triton in programs that start or embed it.

tritonserver                 the program, an entry point for core.serve, and the module of the same name
tritonfrontend               the module of the same name: ports for a server of that module
tritonserver_core.pytriton   PyTriton's `Triton().bind(…)`
tritonserver_core            what the three share: a core.Server with more methods
"""
