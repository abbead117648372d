# distutils: language = c++
# cython: freethreading_compatible=True
"""Histogram, Tally and Loop: the compiled load generator, implemented by the C++ headers beside this file."""

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t
from libcpp cimport bool
from libcpp.map cimport map as cpp_map
from libcpp.memory cimport unique_ptr
from libcpp.string cimport string
from libcpp.utility cimport pair
from libcpp.vector cimport vector


cdef extern from "clock.hpp" namespace "bench" nogil:
    int64_t c_now "bench::now_ns"()

cdef extern from "histogram.hpp" namespace "bench" nogil:
    cdef cppclass CHistogram "bench::Histogram":
        void add(int64_t)
        void merge(const CHistogram&)
        int64_t quantile(double)
        uint64_t count()
        double sum()
        int64_t low()
        int64_t high()
        uint64_t bucket(size_t)
    int64_t begin_of_bucket "bench::Histogram::begin"(size_t)
    size_t BUCKETS "bench::Histogram::kBuckets"

cdef extern from "settings.hpp" namespace "bench" nogil:
    cdef cppclass Request:
        string wire
        int32_t id_at
        int32_t start_at
        int32_t end_at
    cdef enum Protocol "bench::Protocol":
        pass
    cdef enum Answer "bench::Answer":
        pass
    cdef enum Pace "bench::Pace":
        pass
    cdef cppclass Sequences:
        bool on
        uint32_t length
        double variation
        uint64_t first_id
        uint64_t end_id
    cdef cppclass Settings:
        Protocol protocol
        Answer answer
        string address
        uint16_t port
        vector[pair[string, string]] headers
        string path
        bool decoupled
        Pace pace
        double rate
        double phase
        vector[int64_t] intervals_ns
        uint64_t seed
        uint32_t connections
        uint32_t most_connections
        int64_t timeout_ns
        vector[Request] requests
        vector[vector[uint32_t]] streams
        Sequences sequences

cdef extern from "tally.hpp" namespace "bench" nogil:
    cdef cppclass Exchange:
        int64_t due
        int64_t sent
        int64_t first
        int64_t last
        uint64_t responses
        uint64_t tokens
        bool measured
        bool waited
    cdef cppclass CTally "bench::Tally":
        int64_t begin
        int64_t end
        int64_t cpu_ns
        uint64_t completed
        uint64_t all
        uint64_t failed
        uint64_t waited
        uint64_t unsent
        uint64_t unanswered
        uint64_t responses
        uint64_t tokens
        uint64_t sequences
        CHistogram latency
        CHistogram service
        CHistogram first
        CHistogram gap
        CHistogram per_token
        CHistogram lag
        cpp_map[string, uint64_t] errors
        void answered(const Exchange&, int64_t)
        void error(const string&)
        void censored(int64_t, bool)
        void merge(const CTally&)

cdef extern from "loop.hpp" namespace "bench" nogil:
    cdef cppclass Round:
        int64_t settle_ns
        int64_t measure_ns
        int64_t drain_ns
        int64_t give_up_ns
        uint64_t at_least
    cdef cppclass CLoop "bench::Loop":
        CLoop(const Settings&) except +
        bool run(const Round&, CTally&)
        void stop()
        uint64_t progress()
        uint64_t errors()

cdef extern from *:
    """
    #ifdef CORE_BENCH_NGHTTP2
    static const bool with_grpc = true;
    #else
    static const bool with_grpc = false;
    #endif
    """
    bool with_grpc

HAS_GRPC = with_grpc


def now_ns():
    return c_now()


cdef class Histogram:
    cdef CHistogram counts

    def add(self, int64_t value_ns):
        self.counts.add(value_ns)

    def merge(self, Histogram other):
        self.counts.merge(other.counts)

    def quantile(self, double q):
        if not 0 <= q <= 1:
            raise ValueError(f"a quantile is between 0 and 1, not {q}")
        return self.counts.quantile(q)

    @property
    def count(self):
        return self.counts.count()

    @property
    def mean(self):
        return self.counts.sum() / self.counts.count() if self.counts.count() else 0.0

    @property
    def low(self):
        return self.counts.low()

    @property
    def high(self):
        return self.counts.high()

    def buckets(self):
        cdef size_t i
        return [
            (begin_of_bucket(i), self.counts.bucket(i)) for i in range(BUCKETS) if self.counts.bucket(i)
        ]


cdef Histogram copied(const CHistogram& counts):
    cdef Histogram made = Histogram()
    made.counts.merge(counts)
    return made


cdef class Tally:
    cdef CTally tally

    def begin(self, int64_t begin_ns, int64_t end_ns):
        self.tally.begin, self.tally.end = begin_ns, end_ns

    def end_at(self, int64_t end_ns):
        self.tally.end = end_ns

    def within(self, int64_t at_ns):
        return self.tally.begin <= at_ns < self.tally.end

    def answered(
        self, int64_t due, int64_t sent, int64_t first, int64_t last, uint64_t responses, uint64_t tokens,
        bool waited, int64_t now,
    ):
        cdef Exchange done
        done.due, done.sent, done.first, done.last = due, sent, first, last
        done.responses, done.tokens, done.waited = responses, tokens, waited
        done.measured = self.tally.begin <= due < self.tally.end
        self.tally.waited += waited and done.measured
        self.tally.answered(done, now)

    def gap(self, int64_t value_ns):
        self.tally.gap.add(value_ns)

    def error(self, text):
        self.tally.error(text.encode("utf-8", "replace"))

    def censored(self, int64_t waited_ns, bool was_sent):
        self.tally.censored(waited_ns, was_sent)

    def began_sequence(self):
        self.tally.sequences += 1

    def used_cpu(self, int64_t cpu_ns):
        self.tally.cpu_ns = cpu_ns

    def merge(self, Tally other):
        self.tally.merge(other.tally)

    @property
    def measured_ns(self):
        return self.tally.end - self.tally.begin

    @property
    def counts(self):
        return {
            "completed": self.tally.completed,
            "all": self.tally.all,
            "failed": self.tally.failed,
            "waited": self.tally.waited,
            "unsent": self.tally.unsent,
            "unanswered": self.tally.unanswered,
            "responses": self.tally.responses,
            "tokens": self.tally.tokens,
            "sequences": self.tally.sequences,
            "cpu_ns": self.tally.cpu_ns,
        }

    @property
    def errors(self):
        return {text.decode("utf-8", "replace"): count for text, count in dict(self.tally.errors).items()}

    @property
    def latency(self):
        return copied(self.tally.latency)

    @property
    def service(self):
        return copied(self.tally.service)

    @property
    def first(self):
        return copied(self.tally.first)

    @property
    def gaps(self):
        return copied(self.tally.gap)

    @property
    def per_token(self):
        return copied(self.tally.per_token)

    @property
    def lag(self):
        return copied(self.tally.lag)


cdef class Loop:
    cdef unique_ptr[CLoop] loop

    def __init__(self, plan):
        cdef Settings settings
        cdef Request request
        if plan.protocol and not with_grpc:
            raise ValueError("core-bench was compiled without libnghttp2")
        settings.protocol = <Protocol><int>plan.protocol
        settings.answer = <Answer><int>plan.answer
        settings.address = plan.address.encode()
        settings.port = plan.port
        for name, value in plan.headers:
            settings.headers.push_back(pair[string, string](name.encode(), value.encode()))
        settings.path = plan.path.encode()
        settings.decoupled = plan.decoupled
        settings.pace = <Pace><int>plan.pace
        settings.rate = plan.rate
        settings.phase = plan.phase
        settings.intervals_ns = plan.intervals_ns
        settings.seed = plan.seed
        settings.connections, settings.most_connections = plan.connections, plan.most_connections
        settings.timeout_ns = plan.timeout_ns
        for wire, id_at, start_at, end_at in plan.requests:
            request.wire, request.id_at, request.start_at, request.end_at = wire, id_at, start_at, end_at
            settings.requests.push_back(request)
        settings.streams = plan.streams
        if plan.sequences is not None:
            settings.sequences.on = True
            settings.sequences.length = plan.sequences.length
            settings.sequences.variation = plan.sequences.variation
            settings.sequences.first_id = plan.sequences.first_id
            settings.sequences.end_id = plan.sequences.end_id
        self.loop.reset(new CLoop(settings))

    def run(
        self, int64_t settle_ns, int64_t measure_ns, int64_t drain_ns, int64_t give_up_ns, uint64_t at_least
    ):
        cdef Tally tally = Tally()
        cdef Round round
        cdef CLoop* loop = self.loop.get()
        cdef bool alive
        round.settle_ns, round.measure_ns, round.drain_ns = settle_ns, measure_ns, drain_ns
        round.give_up_ns, round.at_least = give_up_ns, at_least
        with nogil:
            alive = loop.run(round, tally.tally)
        return tally, alive

    def stop(self):
        self.loop.get().stop()

    @property
    def progress(self):
        return self.loop.get().progress(), self.loop.get().errors()
