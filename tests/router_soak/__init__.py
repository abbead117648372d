"""A router before three servers, under load while the servers are killed, ended, drained and loaded anew.

    python -m router_soak [--seconds 600]

models.py   what the servers serve
fleet.py    the processes: three servers and a router
load.py     requests of clients, and what became of each
events.py   what happens to the servers
run.py      all of it, and the judgement
"""
