"""Stateful models: all requests of one sequence go to the same instance, in their order.

    admit ─► [SequenceScheduler] ─► Lane (one for each instance: DirectLane or OldestLane) ─► worker

controls.py     the control tensors START, END, READY and CORRID
states.py       implicit state: what the server keeps of a sequence between its requests
lane.py         Sequence and Lane: what belongs to one instance, and who waits in it
direct.py       each sequence has a row of the batch for itself
oldest.py       the oldest requests of the candidate sequences make a batch
scheduler.py    who gets a place, who waits for one, who has been idle for too long
"""

from core.pipeline.sequence.scheduler import SequenceScheduler

__all__ = ["SequenceScheduler"]
