"""The server's side. Everything here may import core.

instance ─► keeper, for a child: process while it starts and ends, connection while it serves
         └► inprocess, for EXECUTION_MODE thread and inline
"""
