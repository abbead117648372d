// Buckets: the use of limits by callers, in memory that several processes may share.
//
// A slot belongs to one caller. There are no locks, so that a process that dies blocks no other process:
//   key        of the caller; 0 for a free slot
//   full_at    time in nanoseconds at which its bucket of requests is full again (GCRA): each request moves
//              it by the interval of the rate
//   inside[w]  requests of worker w in flight; written by w, and after w's end by `clear`
// A slot with a full bucket and without requests in flight has no state: another caller may claim it.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace core_buckets {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "shared between processes");
static_assert(sizeof(std::atomic<std::uint64_t>) == 8 && sizeof(std::atomic<std::uint32_t>) == 4);

constexpr int LOST = -1;  // the slot belongs to another caller by now

struct Slot {
  std::atomic<std::uint64_t> key;
  std::atomic<std::int64_t> full_at;
  std::atomic<std::uint32_t> inside[1];  // one for each worker
};

struct Table {
  char* data;
  std::size_t slots, workers, worker;

  static std::size_t stride(std::size_t workers) { return 16 + (workers + 1) / 2 * 8; }

  Slot& at(std::size_t index) const {
    return *reinterpret_cast<Slot*>(data + index * stride(workers));
  }

  std::uint64_t inside(const Slot& slot) const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < workers; ++i) sum += slot.inside[i].load();
    return sum;
  }

  bool idle(const Slot& slot, std::int64_t now) const {
    return slot.full_at.load() <= now && inside(slot) == 0;
  }

  // Return the index of the slot of a key among `count` from `first` on; claim an idle one if it has none. -1
  // if all slots are in use.
  std::ptrdiff_t claim(std::size_t first, std::size_t count, std::uint64_t key, std::int64_t now) {
    for (std::size_t i = first; i < first + count; ++i)
      if (at(i).key.load() == key) return static_cast<std::ptrdiff_t>(i);
    for (std::size_t i = first; i < first + count; ++i) {
      Slot& slot = at(i);
      std::uint64_t before = slot.key.load();
      if ((before != 0 && !idle(slot, now)) || !slot.key.compare_exchange_strong(before, key))
        continue;
      // Another worker may have claimed an earlier slot for the same caller meanwhile: use that one.
      for (std::size_t j = first; j < i; ++j)
        if (at(j).key.load() == key) {
          slot.key.store(0);
          return static_cast<std::ptrdiff_t>(j);
        }
      return static_cast<std::ptrdiff_t>(i);
    }
    return -1;
  }

  // Count one more request in flight for this worker. Return the new count of all workers. Return 0 if it
  // would exceed `most`, LOST if the slot has another key; both count nothing.
  std::int64_t enter(std::size_t index, std::uint64_t key, std::uint64_t most) {
    Slot& slot = at(index);
    // Count first, then check: two workers at the same time may refuse a request, but never exceed `most`.
    slot.inside[worker].fetch_add(1);
    const std::uint64_t sum = inside(slot);
    if (slot.key.load() == key && sum <= most) return static_cast<std::int64_t>(sum);
    slot.inside[worker].fetch_sub(1);
    return slot.key.load() == key ? 0 : LOST;
  }

  void leave(std::size_t index) {
    std::atomic<std::uint32_t>& mine = at(index).inside[worker];
    if (mine.load() != 0) mine.fetch_sub(1);
  }

  // Take one request from the bucket, and return 0. If it has none, return the nanoseconds until it has one;
  // LOST if the slot has another key.
  std::int64_t take(std::size_t index, std::uint64_t key, std::int64_t interval,
                    std::int64_t tolerance, std::int64_t now) {
    Slot& slot = at(index);
    std::int64_t before = slot.full_at.load();
    for (;;) {
      const std::int64_t base = before > now ? before : now;
      if (slot.key.load() != key) return LOST;
      if (base - now > tolerance) return base - now - tolerance;
      if (slot.full_at.compare_exchange_weak(before, base + interval)) return 0;
    }
  }

  // Set the counts of requests in flight of worker `which`, which has ended, to 0 in all slots.
  void clear(std::size_t which) {
    for (std::size_t i = 0; i < slots; ++i)
      if (at(i).inside[which].load() != 0) at(i).inside[which].store(0);
  }
};

}  // namespace core_buckets
