// Pool of memory for tensors of native backends. It keeps memory for the next batch, since new pages cost more than
// the computation. It uses no Python.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace core_native {

constexpr size_t kAlignment = 64;
constexpr size_t kPooledFrom = 64 * 1024;            // below, malloc is as fast
constexpr size_t kKept = size_t{64} * 1024 * 1024;   // bytes that wait in a pool, at most
constexpr int kClasses = 64;                         // of sizes: powers of two

// Freed memory by size, at most kKept bytes, for later blocks. Thread-safe. Blocks share the ownership.
class Pool {
 public:
  ~Pool() {
    for (auto& kept : kept_)
      for (void* memory : kept) free(memory);
  }

  // Return memory of 2**level bytes, kept or new; nullptr if malloc fails.
  void* take(int level) {
    {
      std::lock_guard<std::mutex> hold(lock_);
      if (!kept_[level].empty()) {
        void* memory = kept_[level].back();
        kept_[level].pop_back();
        bytes_ -= size_t{1} << level;
        return memory;
      }
    }
    return malloc(size_t{1} << level);
  }

  void put(void* memory, int level) noexcept {
    const size_t size = size_t{1} << level;
    {
      std::lock_guard<std::mutex> hold(lock_);
      if (bytes_ + size <= kKept) {
        try {
          kept_[level].push_back(memory);
          bytes_ += size;
          return;
        } catch (const std::bad_alloc&) {  // then it is freed
        }
      }
    }
    free(memory);
  }

  size_t bytes() {
    std::lock_guard<std::mutex> hold(lock_);
    return bytes_;
  }

 private:
  std::mutex lock_;
  std::vector<void*> kept_[kClasses];
  size_t bytes_ = 0;
};

// Owner of the bytes of one tensor. At its end they return to the pool or to malloc, or `release` is called.
class Block {
 public:
  char* data = nullptr;

  Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  // Return a block of `size` bytes, aligned to kAlignment; nullptr if there is no memory.
  static std::unique_ptr<Block> of(const std::shared_ptr<Pool>& pool, uint64_t size) {
    std::unique_ptr<Block> block(new (std::nothrow) Block);
    if (!block || size > (uint64_t{1} << 62)) return nullptr;
    const size_t whole = static_cast<size_t>(size) + kAlignment;
    if (whole < kPooledFrom) {
      block->memory_ = malloc(whole);
    } else {
      int level = 0;
      while ((size_t{1} << level) < whole) level++;
      block->level_ = level;
      block->pool_ = pool;
      block->memory_ = pool->take(level);
    }
    if (!block->memory_) {
      block->pool_.reset();
      return nullptr;
    }
    const uintptr_t at = reinterpret_cast<uintptr_t>(block->memory_);
    block->data = reinterpret_cast<char*>((at + kAlignment - 1) & ~uintptr_t{kAlignment - 1});
    return block;
  }

  // Return a block over memory of a backend, without a copy; nullptr, without calling `release`, on failure.
  static std::unique_ptr<Block> borrowed(const void* data, void (*release)(void*), void* argument) {
    std::unique_ptr<Block> block(new (std::nothrow) Block);
    if (!block) return nullptr;
    block->data = const_cast<char*>(static_cast<const char*>(data));
    block->release_ = release;
    block->argument_ = argument;
    return block;
  }

  ~Block() {
    if (release_)
      release_(argument_);
    else if (pool_)
      pool_->put(memory_, level_);
    else
      free(memory_);
  }

 private:
  void* memory_ = nullptr;
  int level_ = 0;
  std::shared_ptr<Pool> pool_;
  void (*release_)(void*) = nullptr;
  void* argument_ = nullptr;
};

}  // namespace core_native
