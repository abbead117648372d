"""Models that are not written as TritonPythonModel, made into one; in a child, or wherever model.py runs.

formats.py    which files these are; also read by the server, which looks for them
choice.py     file → the object that the runner calls
tabular.py    execute for what has rows and features: gather, predict once, split
described.py  what such a model tells of its inputs and outputs, as config.pbtxt has it
table.py      tensors of requests → array or data frame
fitting.py    arrays → the shape and datatype that the configuration promises
scikit.py     scikit-learn: pickles and skops · trust.py who may be unpickled
boosters.py   xgboost and LightGBM, from their own files
settings.py   MLServer's model-settings.json · runtime.py classes written for mlserver
seldon.py     a class with `predict`, as Seldon Core has it · metrics.py what it counts

Nothing here is imported before a model needs it. Everything runs on Python 3.9 and later.
"""
