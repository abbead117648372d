"""A slow and simple model of a scheduler with one instance: the batches, their times, and the refusals.

At each event it checks everything again. Times are in nanoseconds.
"""

from dataclasses import dataclass, field

FULL, EXPIRED, CANCELLED, EXECUTED = "full", "expired", "cancelled", "executed"


@dataclass(frozen=True)
class Policy:
    """How a level waits; 0 is for no bound."""

    timeout_ns: int = 0
    delays: bool = False
    may_override: bool = False
    size: int = 0


@dataclass(frozen=True)
class Rules:
    """The settings of the model's configuration; without batching, `preferred` is empty."""

    most_rows: int = 8
    preferred: tuple[int, ...] = (8,)
    delay_ns: int = 0
    policies: dict[int, Policy] = field(default_factory=lambda: {0: Policy()})
    default_level: int = 0

    def level(self, asked):
        return asked.priority if asked.priority in self.policies else self.default_level

    def expiry_ns(self, asked):
        """When a request has waited for too long; never is the end of all time."""
        policy = self.policies[self.level(asked)]
        timeout_ns = policy.timeout_ns
        if policy.may_override and 0 < asked.timeout_ns < timeout_ns:
            timeout_ns = asked.timeout_ns
        return asked.at_ns + timeout_ns if timeout_ns else float("inf")


@dataclass(frozen=True)
class Asked:
    """One request of the script: its arrival, its content, and the time of its cancellation, if any."""

    number: int
    at_ns: int
    rows: int = 1
    width: int = 1
    priority: int = 0
    timeout_ns: int = 0
    cancelled_ns: float = float("inf")


def predict(script, rules, duration_ns, changes=()):
    """The executions as (time, numbers), and what each client hears: number → (what, time).

    duration_ns   of an execution, a function of its numbers
    changes       (time, the rules from then on), in the order of time
    """
    executions, heard, changes = [], {}, list(changes)
    coming, line = sorted(script, key=lambda asked: asked.at_ns), []
    now = idle_ns = 0

    def leaves(asked, what, at_ns):
        heard[asked.number] = (what, at_ns)
        if asked in line:
            line.remove(asked)

    while coming or line:
        moments = [asked.at_ns for asked in coming[:1]] + [idle_ns]
        moments += [at_ns for at_ns, _ in changes[:1]]
        for asked in line:
            moments += [asked.cancelled_ns, rules.expiry_ns(asked), asked.at_ns + rules.delay_ns]
        now = min(moment for moment in moments if moment > now)
        if changes and changes[0][0] == now:
            rules = changes.pop(0)[1]
        for asked in list(line):
            if asked.cancelled_ns <= now:
                leaves(asked, CANCELLED, now)
            elif rules.expiry_ns(asked) <= now and not rules.policies[rules.level(asked)].delays:
                leaves(asked, EXPIRED, now)
        if coming and coming[0].at_ns == now:
            asked = coming.pop(0)
            level = rules.level(asked)
            size = rules.policies[level].size
            if size and sum(rules.level(other) == level for other in line) >= size:
                leaves(asked, FULL, now)
            else:
                line.append(asked)
        if idle_ns <= now and (batch := next_batch(line, rules, now)):
            numbers = [asked.number for asked in batch]
            executions.append((now, numbers))
            idle_ns = now + duration_ns(numbers)
            for asked in batch:
                leaves(asked, EXECUTED, idle_ns)
    return executions, heard


def next_batch(line, rules, now):
    """Return the requests of the queue that run now; none if it is better to wait."""

    def place(asked):
        late_ns = rules.expiry_ns(asked)
        return (rules.level(asked), late_ns if late_ns <= now else 0, asked.at_ns)

    line = sorted(line, key=place)
    if not line or not rules.preferred:
        return line[:1]
    fitting = [line[: n + 1] for n in range(len(line)) if fits(line[: n + 1], rules)]
    longest = fitting[-1]
    is_late = rules.delay_ns and now >= min(a.at_ns for a in longest) + rules.delay_ns
    if not is_late:
        if preferred := [batch for batch in fitting if rows(batch) in rules.preferred]:
            return preferred[-1]
        largest = max(rules.preferred)
        if rows(longest) > largest:  # then without the requests that are too much
            return [b for b in fitting if rows(b) < largest or len(b) == 1][-1]
    is_complete = longest != line or rows(longest) >= max(rules.preferred)
    return longest if is_late or is_complete or not rules.delay_ns else []


def rows(batch):
    return sum(asked.rows for asked in batch)


def fits(batch, rules):
    return rows(batch) <= rules.most_rows and len({asked.width for asked in batch}) == 1
