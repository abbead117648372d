"""Mistakes with rows of several requests."""

import numpy as np

from broken_backends.contract import Contract, LivesForTwoExecutions, Well, caught_by


@caught_by("test_rows_of_several_requests_do_not_mix")
class TestMixesRows(Contract):
    class instance(Well):
        def execute(self, batch):
            return {"y": -batch["x"][::-1]}


@caught_by("test_requests_that_arrive_together_share_one_execution")
class TestTakesTwoTurns(Contract):
    class instance(Well):
        turns = 0

        def execute(self, batch):
            self.turns += 1
            if self.turns % 2:
                for i in range(len(batch.requests)):
                    batch.reschedule(i)
                return None
            return super().execute(batch)


@caught_by("test_requests_of_different_sizes_share_a_batch")
class TestBelievesInOneRow(Contract):
    class instance(Well):
        def execute(self, batch):
            return {"y": -batch["x"][: len(batch.requests)]}


@caught_by("test_one_row_alone_gets_the_same_answer_as_in_a_batch")
class TestSqueezesOneRow(Contract):
    class instance(Well):
        def execute(self, batch):
            return {"y": np.squeeze(-batch["x"])}


@caught_by("test_the_largest_batch_is_answered")
class TestTakesFewRows(Contract):
    class instance(Well):
        def execute(self, batch):
            if batch.rows > 4:
                raise ValueError("too many")
            return super().execute(batch)


@caught_by("test_more_requests_than_fit_are_all_answered")
class TestLivesForTwoExecutions(Contract):
    instance = LivesForTwoExecutions
