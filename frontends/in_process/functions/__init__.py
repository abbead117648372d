"""Functions as models: what Server.bind makes of a function.

function, specs ─► BoundFunction ─► FunctionRepository ─► lifecycle ─► FunctionModel ─► instances
"""
