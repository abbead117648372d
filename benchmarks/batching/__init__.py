"""Measure the fill of batches, compared with an ideal batcher: python -m benchmarks.batching"""
