/* The time. CORE_PORTABLE leaves out what only Linux has. */
#pragma once

#include <stdint.h>
#include <time.h>

/* Return the time of the clock behind Python's time.monotonic, in nanoseconds. */
static inline int64_t core_monotonic_ns(void) {
  struct timespec now;
#ifdef __APPLE__
  clock_gettime(CLOCK_UPTIME_RAW, &now);
#else
  clock_gettime(CLOCK_MONOTONIC, &now);
#endif
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Return the milliseconds since the Unix epoch, on Linux as of the last kernel tick. */
static inline int64_t core_wall_ms(void) {
  struct timespec now;
#if defined(__linux__) && !defined(CORE_PORTABLE)
  if (clock_gettime(CLOCK_REALTIME_COARSE, &now) != 0)
#endif
    clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
