"""Backends beside the libraries that they run, one file for each kind of model."""
