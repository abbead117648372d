"""Commands of the program `core`: one module each (`check` is a package), and modules that several share:

paths, model_file   turn each PATH of a command line into a model repository
offline, trial      read the folder of a model, and load the model, without a server
"""
