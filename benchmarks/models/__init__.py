"""The models of the benchmark: a request with its response for each, and their files."""
