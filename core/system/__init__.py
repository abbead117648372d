"""What the server needs of the machine.

account.py           bytes that requests and responses of all connections hold
heap.py              freed memory: how much is kept, when it is given back
host_policy.py       host policies: cores that instances are bound to
service_manager.py   notices to systemd
"""
