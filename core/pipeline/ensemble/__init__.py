"""An ensemble: a model whose requests run through other models.

steps.py    the steps of the configuration
chain.py    the handlers of an ensemble version
devices.py  which tensors may stay in the memory of a device
slots.py    how many requests to one step run at a time
plan.py     data of a run: the plan that requests share, the tensors of one request
run.py      the execution of one request
"""

from core.pipeline.ensemble.chain import EnsembleChain, StepModels
from core.pipeline.ensemble.steps import Step, needed_steps, steps_of

__all__ = ["EnsembleChain", "Step", "StepModels", "needed_steps", "steps_of"]
