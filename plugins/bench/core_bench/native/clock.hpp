// now_ns and thread_cpu_ns: the clocks of the load generator, in nanoseconds.
#pragma once

#include <ctime>
#include <cstdint>

namespace bench {

inline int64_t read_clock(clockid_t which) {
  timespec at;
  clock_gettime(which, &at);
  return int64_t(at.tv_sec) * 1000000000 + at.tv_nsec;
}

// CLOCK_MONOTONIC, as time.monotonic_ns().
inline int64_t now_ns() { return read_clock(CLOCK_MONOTONIC); }

inline int64_t thread_cpu_ns() { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace bench
