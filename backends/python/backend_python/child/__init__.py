"""The process of one model instance: `python -m backend_python.child`.

__main__.py    start, main loop, end
connection.py  the channel: who reads, who writes
host.py        what the model's calls of triton_python_backend_utils become
messages.py    requests and answers ⇄ regions
"""
