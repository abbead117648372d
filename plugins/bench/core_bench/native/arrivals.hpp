// Arrivals: the times at which the requests of an open loop are due.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>

#include "settings.hpp"

namespace bench {

class Arrivals {
 public:
  explicit Arrivals(const Settings& settings) : settings_(settings), random_(settings.seed) {}

  // Begins at `start`; the first request of constant pace is due after its phase.
  void begin(int64_t start) {
    start_ = start;
    index_ = 0;
    if (settings_.pace == Pace::constant) start_ += int64_t(settings_.phase * 1e9 / settings_.rate);
    due_ = start_;
    if (settings_.pace == Pace::poisson) due_ += gap();
    if (settings_.pace == Pace::intervals) due_ += next_interval();
  }

  int64_t due() const { return due_; }

  void advance() {
    switch (settings_.pace) {
      case Pace::constant:  // from the start, so that roundings do not add up
        due_ = start_ + int64_t(std::llround(double(++index_) * 1e9 / settings_.rate));
        break;
      case Pace::poisson:
        due_ += gap();
        break;
      default:
        due_ += next_interval();
    }
  }

 private:
  int64_t gap() {
    return int64_t(std::exponential_distribution<double>(settings_.rate)(random_) * 1e9);
  }

  // The list goes on in the next round where it was.
  int64_t next_interval() {
    const auto& all = settings_.intervals_ns;
    return all[place_++ % all.size()];
  }

  const Settings& settings_;
  std::mt19937_64 random_;
  int64_t start_ = 0, due_ = 0;
  uint64_t index_ = 0, place_ = 0;
};

}  // namespace bench
