"""The server's side. Everything here may import core.

model.py       Model: is there something to run, and how
complete.py    auto_complete_config, in a short-lived child
instance.py    ModelInstance
keeper.py      its child: started, replaced when it died, and ended · backoff.py  after which pause ·
               watch.py  if it hangs · health.py  what metrics tell of it
template.py    the process that children are forked from
shared.py      a worker that several instances share, in the place of the template
settings.py    --backend-config=python,NAME=VALUE
process.py     one child, from a thread that may block: start, initialize, finalize, kill
printed.py     what its model prints
connection.py  the same child from the loop, once it runs: batches out, answers in
outbox.py      messages to it
readiness.py   what its model says of its readiness
executions.py  the batches that it has, and what becomes of them · active.py  one of them ·
               answers.py  what it tells of answers · requests.py  a batch as a message
inprocess.py   without a child: EXECUTION_MODE thread and inline · local.py  what its calls become ·
               local_answers.py  the responses to them · handover.py  its batches ·
               tensors.py  core's tensors as the model's, and back
nested.py      the calls of other models that a child makes · bls.py  what they become
calls.py       what a model may ask of the server · control.py  what it may ask about other models
errors.py      its errors in Triton's words
"""
