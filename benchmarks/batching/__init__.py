"""How full batches are, compared with what the arrival of requests allows: python -m benchmarks.batching"""
