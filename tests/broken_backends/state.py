"""State of sequences that is lost, or another's."""

import numpy as np

from broken_backends.contract import Stateful, Sum, caught_by


@caught_by("test_a_request_of_a_sequence_gets_what_the_one_before_has_left")
class TestForgets(Stateful):
    class inner(Sum):
        def execute(self, batch):
            return {"y": batch["x"], "after": batch["x"]}


class RemembersItself(Sum):
    """Keeps the state itself, and mixes sequences."""

    total = 0.0

    def execute(self, batch):
        answers = []
        for value in batch["x"].ravel():
            self.total += float(value)
            answers.append([self.total])
        found = np.array(answers, np.float32)
        return {"y": found, "after": found}


@caught_by(
    "test_a_sequence_that_begins_again_begins_anew", "test_sequences_do_not_share_their_state"
)
class TestRemembersItself(Stateful):
    inner = RemembersItself
