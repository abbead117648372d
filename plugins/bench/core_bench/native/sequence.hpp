// Chooser: which request a connection sends next, and the fields of its sequence.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>

#include "settings.hpp"

namespace bench {

// The sequence of one connection: its requests are sent one after the other.
struct SequenceRun {
  uint64_t id = 0;
  uint32_t step = 0, length = 0;
  size_t stream = 0;
};

// Values for the open fields of a request.
struct Fields {
  uint64_t id = 0;
  bool start = false, end = false;
};

class Chooser {
 public:
  explicit Chooser(const Settings& settings)
      : settings_(settings), random_(settings.seed + 1), next_id_(settings.sequences.first_id) {
    for (const auto& stream : settings.streams) {
      all_.insert(all_.end(), stream.begin(), stream.end());
    }
  }

  const Request& next(SequenceRun& run, Fields& fields) {
    if (!settings_.sequences.on) return settings_.requests[all_[place_++ % all_.size()]];
    if (run.step == run.length) begin(run);
    fields.id = run.id;
    fields.start = run.step == 0;
    fields.end = run.step + 1 == run.length;
    const auto& stream = settings_.streams[run.stream];
    return settings_.requests[stream[run.step++ % stream.size()]];
  }

 private:
  void begin(SequenceRun& run) {
    const Sequences& all = settings_.sequences;
    run.id = next_id_++;
    if (all.end_id && next_id_ >= all.end_id) next_id_ = all.first_id;
    run.stream = place_++ % settings_.streams.size();
    run.step = 0;
    run.length = uint32_t(settings_.streams[run.stream].size());
    if (!all.length) return;
    const double by = all.variation * std::uniform_real_distribution<double>(-1, 1)(random_);
    run.length = uint32_t(std::max(1.0, std::round(all.length * (1 + by))));
  }

  const Settings& settings_;
  std::mt19937_64 random_;
  std::vector<uint32_t> all_;
  uint64_t next_id_, place_ = 0;
};

inline void fill_json(std::string& wire, const Request& request, const Fields& fields) {
  if (request.id_at >= 0) {
    char text[24];
    std::snprintf(text, sizeof text, "%20llu", static_cast<unsigned long long>(fields.id));
    wire.replace(size_t(request.id_at), 20, text, 20);
  }
  if (request.start_at >= 0) {
    wire.replace(size_t(request.start_at), 5, fields.start ? " true" : "false", 5);
  }
  if (request.end_at >= 0) wire.replace(size_t(request.end_at), 5, fields.end ? " true" : "false", 5);
}

// Varints of a fixed number of bytes: the upper ones may be zero, which every parser accepts.
inline void fill_varints(std::string& wire, const Request& request, const Fields& fields) {
  if (request.id_at >= 0) {
    uint64_t rest = fields.id;
    for (size_t i = 0; i < 10; ++i, rest >>= 7) {
      wire[size_t(request.id_at) + i] = char((rest & 0x7f) | (i < 9 ? 0x80 : 0));
    }
  }
  if (request.start_at >= 0) wire[size_t(request.start_at)] = char(fields.start);
  if (request.end_at >= 0) wire[size_t(request.end_at)] = char(fields.end);
}

}  // namespace bench
