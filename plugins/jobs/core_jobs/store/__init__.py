"""The store: jobs, their requests and their results in one SQLite file.

disk.py       runs everything below on one thread of its own
database.py   connection, transactions, sizes; schema.py the tables
The other modules are functions of a Database, each of them one transaction.
"""
