"""Platforms that run containers and send them requests over HTTP, each with paths of its own.

binary.py           binary tensors without headers of ours
default.py          the model for a request that names none
sagemaker.py        the port of Amazon SageMaker
sagemaker_models.py multi-model endpoints there: requests load and unload models
sagemaker_folder.py finds the model in a folder that SageMaker has unpacked
vertex_ai.py        the port of Google's Vertex AI

Their paths lead to the services of the v2 protocol. Their contracts are Triton's
(docs/platforms.md).
"""
