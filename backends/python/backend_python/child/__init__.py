"""The process of one model instance, or of several, and the template that it is forked from.

template.py    forks children and tells how they have ended
main.py        a child: start, main loop, end
worker.py      a process for several instances, EXECUTION_MODE shared
connection.py  the channel: who reads, and calls
mailboxes.py   answers to its calls that were not taken yet
outgoing.py    its half that sends
held.py        answers that are sent together
host.py        what the model's calls of triton_python_backend_utils become
messages.py    requests and answers ⇄ regions
"""
