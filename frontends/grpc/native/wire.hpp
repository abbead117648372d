// The parts of protobuf's wire format that inference messages need.
//
// The code is strict where versions of the protobuf runtime differ: it refuses doubtful bytes, and the caller
// then uses the runtime. Every runtime accepts all accepted messages, with the same meaning.
//
// Rules: the "Encoding" chapter of the Protocol Buffers documentation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace infer {

// Limit of the fields of a message at all levels, without elements of tensors: MOST_PARTS of
// protocol/decode.py, which refuses a message with more.
constexpr size_t kMostParts = 100000;

// A view of bytes, which it does not own.
struct Span {
  const char* data = "";
  size_t size = 0;

  // The length is a constant for the compiler, so this is a comparison of a few machine words.
  template <size_t N>
  bool is(const char (&text)[N]) const {
    return size == N - 1 && std::memcmp(data, text, N - 1) == 0;
  }
  template <size_t N>
  bool starts_with(const char (&text)[N]) const {
    return size >= N - 1 && std::memcmp(data, text, N - 1) == 0;
  }
};

enum WireType : uint32_t {
  kVarint = 0,
  kFixed64 = 1,
  kLength = 2,
  kGroupStart = 3,
  kGroupEnd = 4,
  kFixed32 = 5,
};

constexpr uint32_t tag_of(uint32_t field, WireType type) { return field << 3 | type; }

// Whether bytes are valid UTF-8: in its shortest form, without surrogates.
inline bool is_utf8(Span text) {
  const auto* at = reinterpret_cast<const uint8_t*>(text.data);
  const auto* const end = at + text.size;
  while (at < end) {
    if (end - at >= 8) {
      uint64_t eight;
      std::memcpy(&eight, at, 8);
      if ((eight & 0x8080808080808080u) == 0) {
        at += 8;
        continue;
      }
    }
    const uint8_t first = *at++;
    if (first < 0x80) continue;
    // The second byte decides about overlong forms, surrogates and the end of Unicode.
    uint8_t low = 0x80, high = 0xBF;
    int more;
    if (first >= 0xC2 && first <= 0xDF) {
      more = 1;
    } else if (first >= 0xE0 && first <= 0xEF) {
      more = 2;
      if (first == 0xE0) low = 0xA0;
      if (first == 0xED) high = 0x9F;
    } else if (first >= 0xF0 && first <= 0xF4) {
      more = 3;
      if (first == 0xF0) low = 0x90;
      if (first == 0xF4) high = 0x8F;
    } else {
      return false;
    }
    if (end - at < more || *at < low || *at > high) return false;
    for (int i = 1; i < more; ++i) {
      if ((at[i] & 0xC0) != 0x80) return false;
    }
    at += more;
  }
  return true;
}

// A position in an encoded message. Each reading function moves it and returns true, or returns false for
// invalid or doubtful bytes; the position is undefined after that.
class Cursor {
 public:
  explicit Cursor(Span message)
      : at_(reinterpret_cast<const uint8_t*>(message.data)), end_(at_ + message.size) {}

  bool more() const { return at_ != end_; }
  const char* place() const { return reinterpret_cast<const char*>(at_); }

  // Read a varint: at most ten bytes, of which the tenth may have only the last bit.
  bool varint(uint64_t& value) {
    if (at_ == end_) return false;
    uint64_t byte = *at_++;
    value = byte & 0x7F;
    for (int shift = 7; byte >= 0x80; shift += 7) {
      if (at_ == end_ || shift > 63) return false;
      byte = *at_++;
      if (shift == 63 && byte > 1) return false;
      value |= (byte & 0x7F) << shift;
    }
    return true;
  }

  // Read the tag of the next field: at most five bytes and 32 bits; field 0 is invalid.
  bool tag(uint32_t& value) {
    uint64_t number;
    const uint8_t* const start = at_;
    if (!varint(number) || at_ - start > 5 || number > UINT32_MAX || number >> 3 == 0) return false;
    value = static_cast<uint32_t>(number);
    return true;
  }

  bool bytes(Span& value) {
    uint64_t size;
    const uint8_t* const start = at_;
    if (!varint(size) || at_ - start > 5 || size > left()) return false;
    value = {place(), static_cast<size_t>(size)};
    at_ += size;
    return true;
  }

  bool text(Span& value) { return bytes(value) && is_utf8(value); }

  // Read a little-endian number of the width of `value`. The machine must be little endian.
  template <typename Number>
  bool fixed(Number& value) {
    if (left() < sizeof value) return false;
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return true;
  }

  // Skip the content of an unknown field. Groups more than 32 levels deep are refused; runtimes permit a
  // hundred levels, including the messages around them.
  bool skip(uint32_t tag, int depth = 0) {
    uint64_t number;
    uint32_t half;
    Span content;
    switch (tag & 7) {
      case kVarint:
        return varint(number);
      case kFixed64:
        return fixed(number);
      case kLength:
        return bytes(content);
      case kGroupStart:
        return depth < kDeepestGroup && skip_group(tag, depth);
      case kFixed32:
        return fixed(half);
      default:  // the end of a group that has not begun, or a type that does not exist
        return false;
    }
  }

  // Return the number of fields in skipped groups since the last call.
  size_t skipped_in_groups() { return std::exchange(in_groups_, 0); }

 private:
  static constexpr int kDeepestGroup = 32;

  size_t left() const { return static_cast<size_t>(end_ - at_); }

  bool skip_group(uint32_t start, int depth) {
    uint32_t inner;
    while (tag(inner)) {
      if ((inner & 7) == kGroupEnd) return inner >> 3 == start >> 3;
      if (++in_groups_ > kMostParts) return false;
      if (!skip(inner, depth + 1)) return false;
    }
    return false;
  }

  const uint8_t* at_;
  const uint8_t* end_;
  size_t in_groups_ = 0;
};

}  // namespace infer
