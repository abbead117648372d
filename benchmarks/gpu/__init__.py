"""What the server does on a GPU, beside bare loops: python -m benchmarks.gpu."""
