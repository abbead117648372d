/* Kernel timers as file descriptors. timer_open returns -1 if there is none: LoopTimer then uses the loop. */
#pragma once

#include <stdint.h>

#if defined(__linux__) && !defined(CORE_PORTABLE)
#include <sys/timerfd.h>
#include <unistd.h>

#include "form.h"

static inline int timer_open(void) {
  return form_is_portable() ? -1 : timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
}
static inline void timer_set(int fd, int64_t at_ns) {
  struct itimerspec when;
  memset(&when, 0, sizeof when);
  when.it_value.tv_sec = at_ns / 1000000000;
  when.it_value.tv_nsec = at_ns % 1000000000;
  timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL);
}
static inline void timer_clear(int fd) {
  uint64_t times;
  ssize_t size = read(fd, &times, sizeof times);
  (void)size; /* nothing to read: it was set anew after it had fired */
}
static inline void timer_close(int fd) { close(fd); }
#else
static inline int timer_open(void) { return -1; }
static inline void timer_set(int fd, int64_t at_ns) { (void)fd, (void)at_ns; }
static inline void timer_clear(int fd) { (void)fd; }
static inline void timer_close(int fd) { (void)fd; }
#endif
