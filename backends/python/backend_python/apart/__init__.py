"""Models of other backends in processes of their own.

model.py    what a child runs in the place of a model's own file
running.py  the other backend, without a server around it
answers.py  its answers as those of a Python model
"""
