/* The time. CORE_PORTABLE leaves out what only Linux has. */
#pragma once

#include <stdint.h>
#include <time.h>

/* Nanoseconds of the clock of Python's time.monotonic. */
static inline int64_t core_monotonic_ns(void) {
  struct timespec now;
#ifdef __APPLE__
  clock_gettime(CLOCK_UPTIME_RAW, &now);
#else
  clock_gettime(CLOCK_MONOTONIC, &now);
#endif
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Milliseconds since the epoch, on Linux as of the kernel's last tick. */
static inline int64_t core_wall_ms(void) {
  struct timespec now;
#if defined(__linux__) && !defined(CORE_PORTABLE)
  if (clock_gettime(CLOCK_REALTIME_COARSE, &now) != 0)
#endif
    clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
