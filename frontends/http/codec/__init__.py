"""HTTP bodies ↔ core requests, responses and tensors. Imports no engine: the fast path uses it too."""
