"""State of sequences that is lost or mixed up."""

import numpy as np

from broken_backends.contract import Stateful, Sum, caught_by


@caught_by("test_a_request_of_a_sequence_gets_the_state_of_the_previous_one")
class TestForgets(Stateful):
    class inner(Sum):
        def execute(self, batch):
            return {"y": batch["x"], "after": batch["x"]}


class RemembersItself(Sum):
    """It keeps the state in the instance, shared by all sequences."""

    total = 0.0

    def execute(self, batch):
        answers = []
        for value in batch["x"].ravel():
            self.total += float(value)
            answers.append([self.total])
        found = np.array(answers, np.float32)
        return {"y": found, "after": found}


@caught_by(
    "test_a_sequence_that_starts_again_starts_without_state",
    "test_sequences_do_not_share_their_state",
)
class TestRemembersItself(Stateful):
    inner = RemembersItself
