"""Models that are not written as TritonPythonModel, made into one; in a child, or wherever model.py runs.

adapter.py    what backend_python calls: which file is the model, file → the object that the runner calls
formats.py    names and endings of these files
tabular.py    execute for what has rows and features: gather, predict once, split
described.py  inputs and outputs of such a model, as config.pbtxt has them
table.py      tensors of requests → array or data frame
fitting.py    arrays → the shape and datatype that the configuration promises
scikit.py     scikit-learn: pickles and skops · trust.py which pickles may be read
boosters.py   xgboost and LightGBM, from their own files
settings.py   MLServer's model-settings.json · runtime.py classes written for mlserver
seldon.py     a class with `predict`, as Seldon Core has it · metrics.py its metrics

Nothing is imported before a model needs it. Everything but `adapter.find` runs on Python 3.9 and later.
"""
