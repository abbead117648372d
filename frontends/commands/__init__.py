"""Commands of the program `core`, and modules that several of them share. `core help` is in listing,
`core plugins` in installed, `core config` and `core explain` are in model_commands.

paths, model_file   make model repositories of the paths and files of a command line
offline, trial      read the folder of a model, and load the model, without a server
"""
