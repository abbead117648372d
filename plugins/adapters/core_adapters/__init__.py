"""Adapters that serve other models as TritonPythonModel, in the process that runs the Python model.

adapter.py    the interface for backend_python: find a model's file, open it as a model object
formats.py    names and suffixes of these files
tabular.py    TabularModel: execute for models with rows and features: join, predict once, split
described.py  write the inputs and outputs of a model into its configuration
table.py      tensors of requests → array or data frame
fitting.py    arrays → shape and datatype of the configuration
scikit.py     scikit-learn: pickles and skops · trust.py refuses untrusted pickles
boosters.py   xgboost and LightGBM, from their own files
settings.py   MLServer's model-settings.json · runtime.py classes written for mlserver
seldon.py     classes with `predict` for Seldon Core · metrics.py their metrics

Each module is imported on first use. All modules but `adapter.find` run on Python 3.9 and later.
"""
