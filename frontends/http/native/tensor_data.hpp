// The `data` of a JSON input → the elements of a tensor in their wire form.
//
// Cursor ─► [read_numbers, read_strings] ─► memory of the caller.  As in Triton, only the number of elements
// matters, not the nesting of the lists.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "datatype.hpp"
#include "json_cursor.hpp"

namespace http_json {

// Take nested lists, up to kMostDepth levels: call `element()`, which takes one element, for each element
// that is not a list. Return whether the lists are valid and each call has returned true.
template <class Element>
bool each_leaf(Cursor& cursor, Element element) {
  int depth = 0;
  for (;;) {
    // A value is due, or the end of a list that has just begun.
    bool begun = false;
    while (cursor.take('[')) {
      if (++depth > kMostDepth) return false;
      begun = true;
    }
    if (depth == 0) return false;
    if (!begun || cursor.peek() != ']') {
      do {
        if (!element()) return false;
      } while (cursor.take_comma_before_value());
    }
    while (cursor.take(']')) {
      if (--depth == 0) return true;
    }
    if (!cursor.take(',')) return false;
  }
}

template <class Number>
void store(Number value, char* to) {
  std::memcpy(to, &value, sizeof value);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  std::reverse(to, to + sizeof value);
#endif
}

// Take one element into `value`, with the rules of json_number.hpp; return whether it is valid for its type.
inline bool take_number(Cursor& cursor, bool& value) { return cursor.take_truth(value); }
inline bool take_number(Cursor& cursor, double& value) { return cursor.take_real(value); }

// A finite number beyond the range of a float is invalid; Infinity is valid.
inline bool take_number(Cursor& cursor, float& value) {
  double wide;
  if (!cursor.take_real(wide)) return false;
  value = static_cast<float>(wide);
  return !std::isinf(value) || std::isinf(wide);
}

template <class Integer>
bool take_number(Cursor& cursor, Integer& value) {
  return cursor.take_integer(value);
}

// Take nested lists of exactly `count` numbers; write them in wire form to `to`, count * sizeof(Number)
// bytes. Return whether that succeeds.
template <class Number>
bool read_numbers(Cursor& cursor, size_t count, char* to) {
  const char* const end = to + count * sizeof(Number);
  const bool form = each_leaf(cursor, [&] {
    Number value;
    if (to == end || !take_number(cursor, value)) return false;
    store(value, to);
    to += sizeof value;
    return true;
  });
  return form && to == end;
}

inline bool read_numbers(Cursor& cursor, DataType type, size_t count, char* to) {
  switch (type) {
    case DataType::kBool: return read_numbers<bool>(cursor, count, to);
    case DataType::kUint8: return read_numbers<uint8_t>(cursor, count, to);
    case DataType::kUint16: return read_numbers<uint16_t>(cursor, count, to);
    case DataType::kUint32: return read_numbers<uint32_t>(cursor, count, to);
    case DataType::kUint64: return read_numbers<uint64_t>(cursor, count, to);
    case DataType::kInt8: return read_numbers<int8_t>(cursor, count, to);
    case DataType::kInt16: return read_numbers<int16_t>(cursor, count, to);
    case DataType::kInt32: return read_numbers<int32_t>(cursor, count, to);
    case DataType::kInt64: return read_numbers<int64_t>(cursor, count, to);
    case DataType::kFp32: return read_numbers<float>(cursor, count, to);
    case DataType::kFp64: return read_numbers<double>(cursor, count, to);
    default: return false;
  }
}

template <class Number>
bool read_element(Cursor& cursor) {
  Number value;
  return take_number(cursor, value);
}

// Take one element; return whether it is valid for the datatype.
inline bool read_element(Cursor& cursor, DataType type) {
  switch (type) {
    case DataType::kBool: return read_element<bool>(cursor);
    case DataType::kUint8: return read_element<uint8_t>(cursor);
    case DataType::kUint16: return read_element<uint16_t>(cursor);
    case DataType::kUint32: return read_element<uint32_t>(cursor);
    case DataType::kUint64: return read_element<uint64_t>(cursor);
    case DataType::kInt8: return read_element<int8_t>(cursor);
    case DataType::kInt16: return read_element<int16_t>(cursor);
    case DataType::kInt32: return read_element<int32_t>(cursor);
    case DataType::kInt64: return read_element<int64_t>(cursor);
    case DataType::kFp32: return read_element<float>(cursor);
    case DataType::kFp64: return read_element<double>(cursor);
    default: return false;
  }
}

// Read nested lists of exactly `count` numbers at `at` into `to`. Return the position after them; null if
// they are invalid.
inline const char* read_numbers(const char* at, const char* end, DataType type, size_t count, char* to) {
  Cursor cursor(at, end);
  return read_numbers(cursor, type, count, to) ? cursor.at() : nullptr;
}

// Read nested lists of exactly `count` numbers into `to`, and return null. If the datatype cannot hold one of
// them, return the position of the first such number. The lists must be valid.
inline const char* first_outside(const char* at, const char* end, DataType type, size_t count, char* to) {
  Cursor cursor(at, end);
  if (read_numbers(cursor, type, count, to)) return nullptr;
  // A number that is refused is refused again where it begins: so many of those before it are right.
  cursor.move_to(at);
  const char* wrong = at;
  each_leaf(cursor, [&] {
    cursor.skip_space();
    wrong = cursor.at();
    return read_element(cursor, type);
  });
  return wrong;
}

// Write the bytes of a string, without its quotes and escapes, to `to`; return their number. It must be
// valid.
inline size_t unescape(const char* at, const char* end, char* to) {
  struct Place {
    char* at;
    void append(const char* data, size_t size) {
      std::memcpy(at, data, size);
      at += size;
    }
  } place{to};
  Cursor cursor(at, end);
  cursor.append_text(place);
  return static_cast<size_t>(place.at - to);
}

// Write `count` strings, each as its length and its bytes, to `to`, which has enough room. The text is an
// array, or one string. Return false if it is invalid.
inline bool pack_strings(const char* at, const char* end, size_t count, char* to) {
  struct Place {
    char* at;
    void append(const char* data, size_t size) {
      std::memcpy(at, data, size);
      at += size;
    }
  } place{to};
  Cursor cursor(at, end);
  const auto element = [&] {
    char* const start = place.at;
    place.at += 4;
    if (count-- == 0 || !cursor.append_text(place)) return false;
    store(static_cast<uint32_t>(place.at - start - 4), start);
    return true;
  };
  return cursor.peek() == '[' ? each_leaf(cursor, element) : element();
}

// Appends to `bytes` up to `most` bytes. An append beyond them, and all after it, only sets `full`.
class Growing {
 public:
  Growing(std::vector<char>& bytes, size_t most) : bytes_(bytes), most_(most) {}

  void append(const char* data, size_t size) {
    if (size > most_ - bytes_.size()) full_ = true;
    if (!full_) bytes_.insert(bytes_.end(), data, data + size);
  }

  bool full() const { return full_; }

 private:
  std::vector<char>& bytes_;
  const size_t most_;
  bool full_ = false;
};

// Take nested lists of exactly `count` strings into `bytes`, which is cleared first, each as its length and
// its bytes. Return false if they are invalid, or need more than `most` bytes.
inline bool read_strings(Cursor& cursor, size_t count, size_t most, std::vector<char>& bytes) {
  bytes.clear();
  Growing growing(bytes, most);
  const bool form = each_leaf(cursor, [&] {
    if (count-- == 0) return false;
    const size_t start = bytes.size();
    growing.append("\0\0\0\0", 4);
    if (!cursor.append_text(growing) || growing.full()) return false;
    const size_t length = bytes.size() - start - 4;
    if (length > std::numeric_limits<uint32_t>::max()) return false;
    store(static_cast<uint32_t>(length), bytes.data() + start);
    return true;
  });
  return form && count == 0;
}

}  // namespace http_json
