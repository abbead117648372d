"""Input files → items. Nothing is read before it is needed; .npz files are read whole."""
