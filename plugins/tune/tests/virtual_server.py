"""A server in virtual time with hidden service times, and the exhaustive truth about it."""

import math
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from core_tune.observation import PROBABILITIES, Observation, Size, latency_of
from core_tune.queueing.arrivals import Arrivals
from core_tune.queueing.limit import value_of
from core_tune.settings import Settings


@dataclass(frozen=True)
class Hidden:
    """What the search does not know: curves of another form than its model, jitter and drift.

    curve    exponent of the rows
    cores    from where on executions slow each other down, smoothly
    jitter   standard deviation of the logarithm of an execution's time
    pause    seconds by which 1 of 300 executions takes longer
    drift    standard deviation of the slowness of the machine, which changes within a minute
    shared   part of an execution that its threads share
    threads  of an execution whose settings do not say it
    """

    base_s: float
    row_s: float
    curve: float
    cores: float
    sharp: float
    front_s: float
    jitter: float
    pause: float
    drift: float
    shared: float = 0.0
    threads: int = 1

    def seconds(self, rows, busy, threads):
        part = 1 - self.shared + self.shared / (threads or self.threads) ** 0.9
        alone = (self.base_s + self.row_s * rows**self.curve) * part
        return (
            alone
            * (1 + (busy / part / self.cores) ** self.sharp) ** (1 / self.sharp)
            / (1 + (1 / self.cores) ** self.sharp) ** (1 / self.sharp)
        )


def random_hidden(seed, drift=0.04):
    """Return one of many servers: fast and slow models, that batch well or badly, on few or many cores."""
    r = np.random.default_rng(seed)
    one = math.exp(r.uniform(math.log(0.001), math.log(0.02)))
    share = r.uniform(0.1, 0.95)  # of the base
    return Hidden(
        base_s=one * share,
        row_s=one * (1 - share),
        curve=r.uniform(0.85, 1.1),
        cores=r.choice([1.0, 1.6, 2.0, 3.5, 8.0]),
        sharp=r.uniform(2, 8),
        front_s=math.exp(r.uniform(math.log(0.00005), math.log(0.0003))),
        jitter=r.uniform(0.02, 0.25),
        pause=r.uniform(0, 2) * one,
        drift=drift,
    )


class Run:
    """One round of one process: requests that arrive, and are executed with core's rules of batches."""

    def __init__(self, hidden, settings, slowness, random, rows=1, most_rows=1):
        self.hidden, self.settings, self.slowness, self.random = hidden, settings, slowness, random
        self.rows = rows
        self.sizes = sorted({max(1, each // rows) for each in settings.sizes}) or [1]
        self.full = self.sizes[-1]
        self.most = max(self.full, most_rows // rows) if settings.delay_us else self.full
        self.delay = settings.delay_us / 1e6
        self.batches = {}

    def _seconds(self, count, busy):
        busy *= self.settings.workers  # the others are as busy
        made = self.hidden.seconds(count * self.rows, busy, self.settings.threads) * self.slowness
        made *= math.exp(self.random.standard_normal() * self.hidden.jitter)
        if self.random.random() < 1 / 300:
            made += self.hidden.pause
        size = self.batches.setdefault(count * self.rows, [0, 0.0])
        size[0] += 1
        size[1] += made
        return made

    def open(self, due):
        """Return the latencies of requests that are due at these times."""
        return self._run(iter(due), None) - due

    def closed(self, clients, seconds):
        """Return latencies of requests of clients that send again when they are answered."""
        begins, ends, self.until = [], [], seconds
        self._run(iter([1e-6 * i for i in range(clients)]), (begins, ends))
        return np.array(ends) - np.array(begins)

    def _run(self, due, closed):
        hidden, free, waiting, ends, events = self.hidden, self.settings.instances, [], {}, []
        number, front_free, slow = 0, 0.0, self.slowness
        arrived = 0

        def arrive(at):
            nonlocal front_free, arrived
            front_free = max(front_free, at) + hidden.front_s * slow
            heappush(events, (front_free, arrived, "queued", (arrived, at)))
            arrived += 1

        if closed:
            for at in due:
                arrive(at)
        else:
            upcoming = next(due, None)
        while True:
            if not closed:
                while upcoming is not None and (not events or upcoming <= events[0][0]):
                    arrive(upcoming)
                    upcoming = next(due, None)
            if not events:
                break
            now, _, kind, what = heappop(events)
            if kind == "queued":
                waiting.append((now, what))
            elif kind == "done":
                free += 1
                for each, begun in what:
                    ends[each] = now
                    if closed:
                        closed[0].append(begun)
                        closed[1].append(now)
                        if now < self.until:
                            arrive(now)
            while free and waiting:
                late = self.delay and now >= waiting[0][0] + self.delay - 1e-12
                count = min(len(waiting), self.most if late else self.full)
                if count >= self.sizes[0] and not late:
                    count = max(each for each in self.sizes if each <= count)
                elif self.delay and not late:
                    heappush(events, (waiting[0][0] + self.delay, -1, "late", None))
                    break
                batch, waiting = waiting[:count], waiting[count:]
                free -= 1
                number += 1
                busy = self.settings.instances - free
                heappush(
                    events,
                    (
                        now + self._seconds(count, busy),
                        10**9 + number,
                        "done",
                        [w for _, w in batch],
                    ),
                )
        return np.array([ends[i] for i in range(len(ends))])


class VirtualMeter:
    """Measures a hidden server: rounds as of the real meter, with jitter and drift."""

    def __init__(
        self, hidden, quantile, objective_s, seed=1, rows=1, most_rows=1, round_s=1.0, rounds=4
    ):
        self.settle_s = min(max(0.3, 2 * objective_s), 0.5) * round_s
        self.arrivals = Arrivals(quantile, objective_s)
        self.hidden, self.quantile, self.rows, self.most_rows = hidden, quantile, rows, most_rows
        self.random = np.random.default_rng(seed)
        self.round_s, self.rounds = round_s, rounds
        self.clock, self.wander, self.count = 0.0, 0.0, 0

    def elapsed_s(self):
        return self.clock

    def _slowness(self):
        keep = 0.85
        self.wander = keep * self.wander + math.sqrt(1 - keep**2) * self.random.standard_normal()
        return math.exp(self.wander * self.hidden.drift)

    def _new(self, settings):
        return Run(self.hidden, settings, self._slowness(), self.random, self.rows, self.most_rows)

    def at_rate(self, settings, rate, longer=1.0):
        return self._measured(settings, rate, 0, longer)

    def in_flight(self, settings, clients):
        return self._measured(settings, 0.0, clients)

    def _measured(self, settings, rate, clients, longer=1.0):
        begin, self.count = self.clock, self.count + 1
        parts, answered, sizes, all_latencies, dues = [], [], {}, [], []
        round_s = longer * min(max(self.round_s, 150 / rate if rate else 0), 3 * self.round_s)
        for number in range(self.rounds):
            # Clients send to all processes alike.
            runs = [self._new(settings) for _ in range(settings.workers)]
            if clients:
                found = [run.closed(max(clients // len(runs), 1), round_s) for run in runs]
                seconds = np.concatenate(found)
                answered.append(len(seconds) / round_s)
            else:
                due = self.arrivals.due(rate, self.settle_s + round_s, 4 * self.count + number)
                dues.append(due)
                split = [due[i :: len(runs)] for i in range(len(runs))]
                seconds = np.concatenate([r.open(d) for r, d in zip(runs, split, strict=True)])
                due = np.concatenate(split)
                ends = due + seconds
                within = (ends > self.settle_s) & (ends <= self.settle_s + round_s)
                answered.append(int(np.count_nonzero(within)) / round_s)
                seconds = seconds[due > self.settle_s]
            parts.append(value_of(seconds, self.quantile))
            all_latencies.append(seconds)
            for run in runs:
                for rows, (number, total) in run.batches.items():
                    known = sizes.setdefault(rows, [0, 0.0])
                    known[0] += number
                    known[1] += total
            self.clock += round_s + 0.3
        together = np.concatenate(all_latencies)
        client = float(together.mean())
        whole = value_of(together, self.quantile)
        return Observation(
            settings=settings,
            rate=rate,
            clients=clients,
            sent=len(together) / round_s / self.rounds,
            answered=float(np.median(answered)),
            latency_s=latency_of(parts, whole, len(together), self.quantile),
            parts_s=parts,
            client_s=client,
            server_s=max(client - 2 * self.hidden.front_s, 1e-6),
            spread_s=[value_of(together, each) for each in PROBABILITIES],
            sizes=[Size(rows, n, total / n) for rows, (n, total) in sorted(sizes.items())],
            seconds=(round_s + (self.settle_s if rate else 0)) * self.rounds,
            at_s=begin,
            due=dues,
            settle_s=self.settle_s,
        )


def true_limit(hidden, settings, quantile, objective_s, rows=1, most_rows=1, requests=4000):
    """Return the highest rate within the objective, of a machine that does not drift."""

    arrivals = Arrivals(quantile, objective_s)

    def keeps(rate):
        run = Run(hidden, settings, 1.0, np.random.default_rng(7), rows, most_rows)
        due = arrivals.counted(rate / settings.workers, requests)
        return value_of(run.open(due)[len(due) - requests :], quantile) <= objective_s

    low, high = 1.0, 2.0
    if not keeps(low):
        return 0.0
    while keeps(high):
        low, high = high, high * 1.5
    while high > low * 1.01:
        middle = math.sqrt(low * high)
        if keeps(middle):
            low = middle
        else:
            high = middle
    return low


__all__ = ["Settings", "VirtualMeter", "random_hidden", "true_limit"]
