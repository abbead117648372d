// Assembles the messages of a stream from the bytes of its DATA frames.
//
// A message has a prefix of five bytes (compressed flag, size) and its content. The content is copied once,
// from the read buffer to the memory of the message.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace core_grpc {

// Allocates messages, and keeps outgoing buffers alive. The session does not own it. Loop thread only.
class Memory {
 public:
  virtual ~Memory() = default;
  // Return a new block of `size` bytes, and set `data` to its first byte; nullptr without memory. The caller
  // owns the block, until `release`.
  virtual void* make(size_t size, char** data) = 0;
  // Resize a block; return it, maybe moved, and set `data`. Without memory, free the block and return
  // nullptr.
  virtual void* resize(void* block, size_t size, char** data) = 0;
  virtual void retain(void* owner) = 0;
  virtual void release(void* owner) = 0;
};

// How many bytes the incomplete messages of one connection may still reserve before they arrive. Reserved
// bytes take address space, but no memory until they are written.
struct Reserve {
  size_t left;
};

constexpr size_t FIRST_BYTES = 512;      // of an incomplete message that reserves nothing
constexpr size_t RESERVING_FROM = 4096;  // received bytes, before a message may reserve the rest

constexpr size_t MESSAGE_PREFIX = 5;  // bytes on the wire before each message

enum class Progress { more, complete, too_large, no_memory, bad_flag };

// The incomplete message of one stream: its received bytes, in a block of Memory.
class Assembly {
 public:
  bool compressed() const { return prefix_[0] != 0; }
  size_t size() const { return size_; }
  size_t received() const { return received_; }
  // Whether no byte of the next message has arrived.
  bool idle() const { return prefix_bytes_ == 0; }

  // Take bytes from the front of data[0:count], until one message is complete or they are used up; move
  // `data` and `count`. On complete, call `take`. The others are errors, except `more`.
  // most   largest size of a message in bytes
  Progress feed(const char*& data, size_t& count, size_t most, Memory& memory, Reserve& reserve) {
    while (prefix_bytes_ < sizeof prefix_) {
      if (count == 0) return Progress::more;
      prefix_[prefix_bytes_++] = static_cast<unsigned char>(*data++);
      --count;
      if (prefix_bytes_ == sizeof prefix_) {
        if (prefix_[0] > 1) return Progress::bad_flag;
        size_ = size_t{prefix_[1]} << 24 | size_t{prefix_[2]} << 16 | size_t{prefix_[3]} << 8 |
                size_t{prefix_[4]};
        if (size_ > most) return Progress::too_large;
      }
    }
    // Allocate no memory for a message without received bytes.
    if (count == 0 && size_ != 0) return Progress::more;
    size_t taken = std::min(count, size_ - received_);
    if (!make_room(received_ + taken, memory, reserve)) return Progress::no_memory;
    if (taken != 0) std::memcpy(bytes_ + received_, data, taken);
    data += taken;
    count -= taken;
    received_ += taken;
    return received_ == size_ ? Progress::complete : Progress::more;
  }

  // Return the block of the complete message, which the caller then owns, and begin the next message.
  void* take(Reserve& reserve) {
    void* found = block_;
    block_ = nullptr;
    restart(reserve);
    return found;
  }

  void clear(Memory& memory, Reserve& reserve) {
    if (block_ != nullptr) memory.release(block_);
    block_ = nullptr;
    restart(reserve);
  }

 private:
  bool make_room(size_t needed, Memory& memory, Reserve& reserve) {
    if (block_ != nullptr && needed <= capacity_) return true;
    if (needed == size_) {
      capacity_ = size_;
    } else if (needed >= RESERVING_FROM && size_ <= reserve.left) {
      capacity_ = reserved_ = size_;
      reserve.left -= reserved_;
    } else {
      // Double the size, so that it is at most twice the received bytes.
      capacity_ = std::min(size_, std::max({needed, capacity_ * 2, FIRST_BYTES}));
    }
    block_ = block_ == nullptr ? memory.make(capacity_, &bytes_)
                               : memory.resize(block_, capacity_, &bytes_);
    return block_ != nullptr;
  }

  void restart(Reserve& reserve) {
    reserve.left += reserved_;
    reserved_ = 0;
    prefix_bytes_ = 0;
    size_ = received_ = capacity_ = 0;
  }

  unsigned char prefix_[5] = {};
  uint8_t prefix_bytes_ = 0;
  size_t size_ = 0, received_ = 0, capacity_ = 0, reserved_ = 0;
  void* block_ = nullptr;
  char* bytes_ = nullptr;
};

}  // namespace core_grpc
