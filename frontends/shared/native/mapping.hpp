// Memory shared with clients, whose pages may disappear during an access.
//
//   map ─► [Range] ─► readers ─► SIGBUS ─► zeros instead of missing pages, and the range is marked
//
// A client can make the file behind a mapping smaller, or the system can have no memory left for a page of
// it. An access to such a page raises SIGBUS, which ends the process. This handler instead replaces the mapping
// by private zeros from that page on, and the instruction runs again.

#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>

namespace client_memory {

// Addresses of one mapping, and whether pages of it were lost. Invariants:
//   1. `turn` is odd while begin and end are written; readers check it before and after.
//   2. A range does not change while it is read: the reader keeps the mapping.
struct Range {
  std::atomic<uint32_t> turn{0};
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};  // 0 for a free range
  std::atomic<bool> lost{false};

  void set(uintptr_t from, uintptr_t to) noexcept {
    turn.fetch_add(1);
    begin.store(from);
    end.store(to);
    lost.store(false);
    turn.fetch_add(1);
  }
};

// Ranges in blocks that are never freed, so that the signal handler can read them without a lock.
struct Block {
  Range ranges[64];
  std::atomic<Block*> next{nullptr};
};

struct Guard {
  Block first;
  std::mutex changing;
  struct sigaction before {};
  std::atomic<bool> installed{false};
  std::atomic<bool> passing_on{false};
};

inline Guard guard;

// Map private zeros from the page of `at` to the end of the range, or, if that fails as with larger pages, to
// the whole range. Mark the range as lost; return false if both fail.
inline bool replace(Range& range, uintptr_t begin, uintptr_t end, uintptr_t at) noexcept {
  constexpr int kFlags = MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS | MAP_NORESERVE;
  const uintptr_t page = at & ~(static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)) - 1);
  for (const uintptr_t from : {page, begin}) {
    void* const found =
        mmap(reinterpret_cast<void*>(from), end - from, PROT_READ | PROT_WRITE, kFlags, -1, 0);
    if (found != MAP_FAILED) {
      range.lost.store(true);
      return true;
    }
  }
  return false;
}

inline bool answered(uintptr_t at) noexcept {
  for (Block* block = &guard.first; block != nullptr; block = block->next.load()) {
    for (Range& range : block->ranges) {
      const uint32_t turn = range.turn.load();
      const uintptr_t begin = range.begin.load(), end = range.end.load();
      if (turn % 2 != 0 || turn != range.turn.load()) continue;
      if (begin <= at && at < end) return replace(range, begin, end, at);
    }
  }
  return false;
}

// Pass a SIGBUS of other memory to the previous handler; without one let it end the process.
inline void pass_on(int number, siginfo_t* info, void* context) noexcept {
  const struct sigaction& before = guard.before;
  const bool once_more = guard.passing_on.exchange(true);
  if (!once_more && (before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr) {
    before.sa_sigaction(number, info, context);
  } else if (!once_more && before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(number);
  } else {
    struct sigaction none {};
    none.sa_handler = SIG_DFL;
    sigaction(number, &none, nullptr);  // the instruction runs again
  }
}

inline void on_bus_error(int number, siginfo_t* info, void* context) noexcept {
  const int saved = errno;
  if (info->si_code != BUS_ADRERR || !answered(reinterpret_cast<uintptr_t>(info->si_addr))) {
    pass_on(number, info, context);
  }
  errno = saved;
}

inline void install() noexcept {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  if (sigaction(SIGBUS, &action, &guard.before) == 0) guard.installed.store(true);
}

// Guard a mapping until `release`. Return its range; nullptr if there is no memory.
inline Range* keep(void* data, size_t size) noexcept {
  const std::lock_guard<std::mutex> lock(guard.changing);
  if (!guard.installed.load()) install();
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(data);
  const uintptr_t end = (begin + size + page - 1) & ~(page - 1);
  for (Block* block = &guard.first;; block = block->next.load()) {
    for (Range& range : block->ranges) {
      if (range.end.load() == 0) {
        range.set(begin, end);
        return &range;
      }
    }
    if (block->next.load() == nullptr) {
      Block* const more = new (std::nothrow) Block;
      if (more == nullptr) return nullptr;
      block->next.store(more);
    }
  }
}

inline void release(Range* range) noexcept {
  const std::lock_guard<std::mutex> lock(guard.changing);
  range->set(0, 0);
}

}  // namespace client_memory
