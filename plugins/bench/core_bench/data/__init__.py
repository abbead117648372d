"""Input data: random, zero, from a JSON file, or from a folder."""
