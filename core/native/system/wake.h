/* Wakers of event loops (eventfd), signals to threads (semaphores). -1: ThreadQueue uses Python's queues. */
#pragma once

#if defined(__linux__) && !defined(CORE_PORTABLE)
#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "form.h"

typedef sem_t thread_signal;

static inline int waker_open(void) {
  return form_is_portable() ? -1 : eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}
static inline void waker_ring(int waker) {
  const uint64_t once = 1;
  ssize_t size = write(waker, &once, sizeof once);
  (void)size; /* it fails only if the loop is already being woken */
}
static inline void waker_clear(int waker) {
  uint64_t times;
  ssize_t size = read(waker, &times, sizeof times);
  (void)size;
}
static inline void waker_close(int waker) { close(waker); }

static inline int signal_open(thread_signal* signal) { return sem_init(signal, 0, 0); }
static inline void signal_post(thread_signal* signal) { sem_post(signal); }
static inline void signal_wait(thread_signal* signal) {
  while (sem_wait(signal) != 0 && errno == EINTR) {
  }
}
static inline void thread_yield(void) { sched_yield(); }
static inline void signal_close(thread_signal* signal) { sem_destroy(signal); }
#else
typedef int thread_signal;
static inline int waker_open(void) { return -1; }
static inline void waker_ring(int waker) { (void)waker; }
static inline void waker_clear(int waker) { (void)waker; }
static inline void waker_close(int waker) { (void)waker; }
static inline int signal_open(thread_signal* signal) { (void)signal; return -1; }
static inline void signal_post(thread_signal* signal) { (void)signal; }
static inline void signal_wait(thread_signal* signal) { (void)signal; }
static inline void thread_yield(void) {}
static inline void signal_close(thread_signal* signal) { (void)signal; }
#endif
