"""`core import`: write a model of another server into a model repository.

SOURCE ─► [sources] its kind ─► [torchserve, mlflow, bento_…, litserve] ─► [Draft] ─► REPOSITORY/NAME

`adapters` are not imported here: they are the files that become model.py of an imported model. Nothing of a
source is executed: Python files are parsed, pickles are copied.
"""
