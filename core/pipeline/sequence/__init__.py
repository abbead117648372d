"""Stateful models: all requests of one sequence go to the same instance, in their order.

    admit ─► [SequenceScheduler] ─► InstanceSlots ─► runner

controls.py     the control tensors START, END, READY and CORRID
states.py       implicit state: tensors that the server keeps between the requests of a sequence
slots.py        Sequence, and InstanceSlots: the sequences of one instance
direct.py       the direct strategy: each sequence has a row of the batch
oldest.py       the oldest strategy: the oldest requests of the candidate sequences form a batch
scheduler.py    gives slots to sequences, and ends idle sequences
"""

from core.pipeline.sequence.scheduler import SequenceScheduler

__all__ = ["SequenceScheduler"]
