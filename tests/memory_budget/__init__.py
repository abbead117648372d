"""The proof of the memory budget: many ONNX models on a quarter of their memory, under load.

models.py    writes the models
lru.py       the oracle: an LRU that knows the whole trace
clients.py   requests over HTTP and gRPC, some of which are cancelled or have a short deadline
steady.py    requests for one model that stays, to see what the loads of others cost it
sampler.py   the kernel's figures of the server's memory
disturber.py loads by an operator, and killed processes
judge.py     what must hold
run.py       a soak from its models to its result
"""
