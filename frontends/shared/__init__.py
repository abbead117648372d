"""What the frontends have in common, whatever protocol they speak.

options.py            flags of all frontends together · secure.py  what --secure sets and checks ·
                      forms.py  forms of flags
context.py            one object for all frontends of a server: access policy, access log, watched files
access/               who calls, which roles a call needs, limits of callers; `python -m core token`
access_log.py         a line for every request
watched_files.py      files that are read again when they change
tls.py                certificates, and how a frontend listens over TLS
unix_sockets.py       Unix domain sockets on which a frontend listens
connection_limit.py   number of connections that a port takes
tcp_user_timeout.py   connections whose client takes no answer
shutdown.py           the error of a request that is not done when the server ends
"""
