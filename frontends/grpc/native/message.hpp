// Messages of a stream out of the bytes of its DATA frames.
//
// A message is five bytes (whether it is packed, its size) and that many bytes. Its bytes are copied
// once, from the read buffer to where the message stays.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace core_grpc {

// Where messages live, and what keeps outgoing buffers alive. Owned elsewhere; loop thread only.
class Memory {
 public:
  virtual ~Memory() = default;
  // A new block of `size` bytes; nullptr if there is no memory. `data` becomes its first byte.
  virtual void* make(size_t size, char** data) = 0;
  // The same block with another size, perhaps moved; nullptr, and the block gone, without memory.
  virtual void* resize(void* block, size_t size, char** data) = 0;
  virtual void retain(void* owner) = 0;
  virtual void release(void* owner) = 0;
};

// How many bytes the incomplete messages of one connection may reserve before they arrive. Reserved
// bytes that are not written take no memory yet, but they take address space.
struct Reserve {
  size_t left;
};

constexpr size_t FIRST_BYTES = 512;      // of an incomplete message that reserves nothing
constexpr size_t RESERVING_FROM = 4096;  // bytes that have come, before a message may reserve the rest

constexpr size_t MESSAGE_PREFIX = 5;  // bytes on the wire before each message

enum class Progress { more, complete, too_large, no_memory, bad_flag };

// The message of a stream that is being received.
class Assembly {
 public:
  bool compressed() const { return prefix_[0] != 0; }
  size_t size() const { return size_; }
  size_t received() const { return received_; }
  // Whether nothing of a next message has come yet.
  bool idle() const { return prefix_bytes_ == 0; }

  // Take bytes off the front of data[0:count] until a message is complete or they are used up.
  // most   largest size of a message
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
    // Nothing is taken for a message of which nothing came.
    if (count == 0 && size_ != 0) return Progress::more;
    size_t taken = std::min(count, size_ - received_);
    if (!make_room(received_ + taken, memory, reserve)) return Progress::no_memory;
    if (taken != 0) std::memcpy(bytes_ + received_, data, taken);
    data += taken;
    count -= taken;
    received_ += taken;
    return received_ == size_ ? Progress::complete : Progress::more;
  }

  // The complete message, which is the caller's now; the next one begins.
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
      // Doubled, so that it never is more than twice of what came.
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
