"""Whether the tensors of a model change: sketches of bounded size, as metrics and to compare two captures."""
