"""Input files → items. Nothing is read before it is needed; .npz files and captures are read whole."""
