"""`core run`: many requests to one model, from files to files, without a job on a server.

inputs/    files ─► items
targets/   item ─► response: a server in this process, or one at a URL
outputs/   responses ─► files, in the order of the items
run.py     what connects them
"""
