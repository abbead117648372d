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

// How many bytes the incomplete messages of one connection may reserve before they arrive. What is
// reserved and not written takes no memory yet, but address space is no gift to everybody either.
struct Reserve {
  size_t left;
};

constexpr size_t FIRST_BYTES = 256 * 1024;  // of a message for which the reserve is too small

enum class Progress { more, complete, too_large, no_memory, bad_flag };

// The message of a stream that is being received.
class Assembly {
 public:
  bool compressed() const { return prefix_[0] != 0; }
  size_t size() const { return size_; }
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
    if (block_ == nullptr) {
      // In its final size at once if it is small or the connection has reserved little.
      bool whole = size_ <= FIRST_BYTES || size_ <= reserve.left;
      capacity_ = whole ? size_ : std::max(needed, FIRST_BYTES);
      block_ = memory.make(capacity_, &bytes_);
    } else {
      // Doubled, so that it never is more than twice of what came.
      capacity_ = std::min(size_, std::max(needed, capacity_ * 2));
      block_ = memory.resize(block_, capacity_, &bytes_);
    }
    if (block_ != nullptr && capacity_ > FIRST_BYTES && reserved_ == 0) {
      reserved_ = std::min(capacity_, reserve.left);
      reserve.left -= reserved_;
    }
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
