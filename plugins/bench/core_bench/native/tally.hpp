// Tally: what one round of load has measured. Exchange: a request in flight, and when its parts were seen.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "histogram.hpp"

namespace bench {

struct Exchange {
  int64_t due = 0;    // when it should have been sent
  int64_t sent = 0;
  int64_t first = 0;  // its first response; 0 for none yet
  int64_t last = 0;
  uint64_t responses = 0;
  uint64_t tokens = 0;    // as the server counts them; 0 if it does not
  bool measured = false;  // it was due within the measured time
  bool waited = false;    // all connections were busy when it was due

  void response(int64_t now) {
    if (!first) first = now;
    last = now;
    ++responses;
  }
};

struct Tally {
  static constexpr size_t kMostErrors = 64;  // different texts

  int64_t begin = 0, end = 0;  // the measured time
  int64_t cpu_ns = 0;          // of the load generator within it
  uint64_t completed = 0;      // right answers within it
  uint64_t all = 0;            // answers of the whole round, errors too
  uint64_t failed = 0;
  uint64_t waited = 0;         // had to wait for a free connection
  uint64_t unsent = 0;         // were due, but no connection became free in time
  uint64_t unanswered = 0;     // got no answer in time
  uint64_t responses = 0, tokens = 0, sequences = 0;
  Histogram latency;    // from the due time to the last byte
  Histogram service;    // from the sending to the last byte
  Histogram first;      // from the due time to the first response
  Histogram gap;        // between two responses of a request
  Histogram per_token;  // of a request: (last - first) / (tokens - 1)
  Histogram lag;        // from the due time to the sending, of requests that found a free connection
  std::map<std::string, uint64_t> errors;

  bool within(int64_t at) const { return at >= begin && at < end; }

  void answered(const Exchange& done, int64_t now) {
    ++all;
    if (within(now)) {
      ++completed;
      responses += done.responses;
      tokens += done.tokens ? done.tokens : done.responses;
    }
    if (!done.measured) return;
    latency.add(now - done.due);
    service.add(now - done.sent);
    if (!done.waited) lag.add(done.sent - done.due);
    if (!done.first) return;
    first.add(done.first - done.due);
    const uint64_t count = done.tokens ? done.tokens : done.responses;
    if (count > 1) per_token.add((done.last - done.first) / int64_t(count - 1));
  }

  void error(const std::string& text) {
    ++all;
    ++failed;
    const auto known = errors.find(text);
    if (known != errors.end()) {
      ++known->second;
    } else {
      ++errors[errors.size() < kMostErrors ? text : "other errors"];
    }
  }

  // A request without an answer: its latency is at least the time that it has waited.
  void censored(int64_t waited_ns, bool was_sent) {
    latency.add(waited_ns);
    ++(was_sent ? unanswered : unsent);
  }

  void merge(const Tally& other) {
    if (!begin || other.begin < begin) begin = other.begin;
    if (other.end > end) end = other.end;
    cpu_ns += other.cpu_ns;
    completed += other.completed;
    all += other.all;
    failed += other.failed;
    waited += other.waited;
    unsent += other.unsent;
    unanswered += other.unanswered;
    responses += other.responses;
    tokens += other.tokens;
    sequences += other.sequences;
    latency.merge(other.latency);
    service.merge(other.service);
    first.merge(other.first);
    gap.merge(other.gap);
    per_token.merge(other.per_token);
    lag.merge(other.lag);
    for (const auto& [text, count] : other.errors) {
      errors[errors.count(text) || errors.size() < kMostErrors ? text : "other errors"] += count;
    }
  }
};

}  // namespace bench
