"""The models that servers are measured with: one request and its answer of each, and their files."""
