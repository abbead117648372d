"""`core import`: write a model of another server into a model repository.

SOURCE ─► [sources] which kind ─► [torchserve, mlflow, bentoml, litserve] read it ─► Draft ─► [draft] REPOSITORY/NAME

`adapters` are not imported here: they are the files that become model.py of an imported model. Nothing of a
source is executed: Python files are parsed, pickles are copied.
"""
