"""Platforms that run containers and send them requests over HTTP, each with paths of its own.

binary.py           binary tensors without headers of ours
default.py          the model of a request that names none
sagemaker.py        the port of Amazon SageMaker
sagemaker_models.py multi-model endpoints there: models come and go with requests
sagemaker_folder.py where in what SageMaker has unpacked the model lies
vertex_ai.py        the port of Google's Vertex AI

Their paths lead to the services of the v2 protocol; what they are is Triton's
(docs/platforms.md).
"""
