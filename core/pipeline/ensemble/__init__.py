"""An ensemble: requests that walk through other models instead of instances of their own.

steps.py   what its configuration says
chain.py   the way through it, as the rest of the server sees it
devices.py which tensors may stay on a device
slots.py   how many requests to a step run at a time
run.py     one request on its way through the steps
"""

from core.pipeline.ensemble.chain import EnsembleChain
from core.pipeline.ensemble.steps import Step, needed_steps, steps_of

__all__ = ["EnsembleChain", "Step", "needed_steps", "steps_of"]
