// Output: the unsent messages of a stream, and the bytes for the transport.
//
// A large buffer of a response is never copied: the transport gets pieces of it, with the owner that keeps it
// alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "message.hpp"

namespace core_grpc {

// Pieces of at least this size are not copied; smaller ones are cheaper to copy.
constexpr size_t EXTERNAL_FROM = 16 * 1024;

// A piece of an external buffer in a Wire: it goes before byte `at` of Wire::bytes.
struct External {
  size_t at;
  const char* data;
  size_t size;
  void* owner;  // retained for the piece
};

// The output of one write to the transport: its own bytes, and pieces of external buffers between them.
class Wire {
 public:
  std::string bytes;
  std::vector<External> externals;

  size_t size() const { return bytes.size() + external_bytes_; }
  bool empty() const { return bytes.empty() && externals.empty(); }

  void add(const char* data, size_t size) { bytes.append(data, size); }

  void add_external(const char* data, size_t size, void* owner, Memory& memory) {
    memory.retain(owner);
    externals.push_back({bytes.size(), data, size, owner});
    external_bytes_ += size;
  }

  void clear(Memory& memory) {
    for (External& each : externals) memory.release(each.owner);
    externals.clear();
    external_bytes_ = 0;
    bytes.clear();
  }

 private:
  size_t external_bytes_ = 0;
};

// The unsent output of one stream: messages with their prefixes, in parts, each with a reference to its
// owner.
class Outgoing {
 public:
  size_t size() const { return size_; }
  // Whether a message is partially sent.
  bool broken() const { return offset_ != 0 || (size_ != 0 && parts_[first_].owner != nullptr); }

  // Append the prefix of a message of `size` bytes, whose parts follow.
  void begin_message(bool compressed, size_t size) {
    Part part{nullptr, 5, nullptr, {}};
    part.prefix[0] = compressed ? 1 : 0;
    for (int i = 0; i < 4; ++i) part.prefix[1 + i] = static_cast<char>(size >> (24 - 8 * i));
    parts_.push_back(part);
    size_ += 5;
  }

  // Append a part of the message; takes over the reference to `owner`.
  void add(const char* data, size_t size, void* owner, Memory& memory) {
    if (size == 0) {
      memory.release(owner);
      return;
    }
    parts_.push_back({data, size, owner, {}});
    size_ += size;
  }

  // Move the next `count` bytes, no more than size(), to the wire.
  void move_to(Wire& wire, size_t count, Memory& memory) {
    size_ -= count;
    while (count != 0) {
      Part& part = parts_[first_];
      const char* data = (part.owner == nullptr ? part.prefix : part.data) + offset_;
      size_t taken = std::min(count, part.size - offset_);
      if (part.owner != nullptr && taken >= EXTERNAL_FROM) {
        wire.add_external(data, taken, part.owner, memory);
      } else {
        wire.add(data, taken);
      }
      count -= taken;
      offset_ += taken;
      if (offset_ == part.size) finish_part(memory);
    }
  }

  void clear(Memory& memory) {
    for (; first_ < parts_.size(); ++first_) {
      if (parts_[first_].owner != nullptr) memory.release(parts_[first_].owner);
    }
    parts_.clear();
    first_ = offset_ = size_ = 0;
  }

 private:
  struct Part {
    const char* data;
    size_t size;
    void* owner;  // nullptr: the bytes are in `prefix`
    char prefix[5];
  };

  void finish_part(Memory& memory) {
    void* owner = parts_[first_].owner;
    offset_ = 0;
    if (++first_ == parts_.size()) {
      parts_.clear();
      first_ = 0;
    } else if (first_ >= 64 && first_ * 2 >= parts_.size()) {
      parts_.erase(parts_.begin(), parts_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    if (owner != nullptr) memory.release(owner);
  }

  std::vector<Part> parts_;
  size_t first_ = 0, offset_ = 0, size_ = 0;
};

}  // namespace core_grpc
