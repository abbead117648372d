"""Commands of the program `core`: one module each, and what they share.

paths, model_file   PATH on a command line ─► repositories
offline, trial      the folder of a model ─► a model that is loaded without a server
"""
