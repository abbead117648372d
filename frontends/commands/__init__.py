"""Commands of `python -m core` that read one model without a server.

model_commands.py   `config` and `explain`: arguments, output, exit status
offline.py          a model's folder, completed like a server completes it
trial.py            a load without a server
explain.py          the stages of a request, as text
"""
