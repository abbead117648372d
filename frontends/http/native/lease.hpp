// Scratch objects that keep their memory from one use to the next.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

namespace http_json {

// Borrows a cleared Scratch object of the current thread, for the lifetime of the lease. Simultaneous leases
// have different objects. The next lease of the thread reuses the object and its memory.
template <class Scratch>
class Lease {
 public:
  Lease() : held_(std::move(spare())) {
    if (!held_) held_ = std::make_unique<Scratch>();
  }
  ~Lease() {
    held_->clear();
    spare() = std::move(held_);
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  Scratch* get() const { return held_.get(); }

 private:
  static std::unique_ptr<Scratch>& spare() {
    thread_local std::unique_ptr<Scratch> object;
    return object;
  }

  std::unique_ptr<Scratch> held_;
};

// A buffer of bytes that grows at its end, and owns its memory.
class Growth {
 public:
  Growth() = default;
  ~Growth() { std::free(begin_); }
  Growth(const Growth&) = delete;
  Growth& operator=(const Growth&) = delete;

  const char* data() const { return begin_; }
  size_t size() const { return static_cast<size_t>(at_ - begin_); }

  // Return the end, with room for `size` bytes after it; `end_at` then sets the new end. Throws
  // std::bad_alloc.
  char* room(size_t size) {
    if (static_cast<size_t>(end_ - at_) < size) grow(size);
    return at_;
  }
  void end_at(char* end) { at_ = end; }

  void clear() {
    at_ = begin_;
    if (end_ - begin_ > kKept) {
      std::free(begin_);
      begin_ = at_ = end_ = nullptr;
    }
  }

 private:
  static constexpr ptrdiff_t kKept = ptrdiff_t{1} << 20;

  void grow(size_t more) {
    const size_t used = size();
    const size_t wanted = 2 * (used + more) + 1024;
    char* found = static_cast<char*>(std::realloc(begin_, wanted));
    if (found == nullptr) throw std::bad_alloc();
    begin_ = found;
    at_ = begin_ + used;
    end_ = begin_ + wanted;
  }

  char* begin_ = nullptr;
  char* at_ = nullptr;
  char* end_ = nullptr;
};

}  // namespace http_json
