"""Several processes that serve as one: `--workers=N`.

    supervisor ─► worker 1 (loop, models, frontends)      clients ─► the kernel ─► the port of any worker
        │     └─► worker 2 (the same)
        └── a channel to each: what one worker is asked about the server, all of them answer or do

supervisor.py   starts, restarts and ends the workers; has no model, no frontend, no numpy
relay.py        what one worker wants, of all · exchange.py  who is asked, who has answered ·
                operation.py  who agrees · ledger.py  what a worker that comes later has to catch up
process.py      one worker as the supervisor sees it · delays.py  when it is started again ·
                ports.py  one port for all of them
channel.py      messages between two processes · values.py  what is in them
member.py       the worker's side,
                which implements the Exchange of core.control

`docs/workers.md` is for those who use it.
"""
