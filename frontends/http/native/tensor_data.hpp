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

// Call `element()` at each element of lists in lists, `most` levels deep.
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

// Parse one element, with the rules of json_number.hpp.
inline bool take_number(Cursor& cursor, bool& value) { return cursor.take_truth(value); }
inline bool take_number(Cursor& cursor, double& value) { return cursor.take_real(value); }

// Only what came as an infinity may be one.
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

// Exactly `count` numbers into `to`, count * sizeof(Number) bytes.
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

// Whether the next token is an element of the datatype.
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

// The same from `at` on; returns what is behind them, null if they are not right.
inline const char* read_numbers(const char* at, const char* end, DataType type, size_t count, char* to) {
  Cursor cursor(at, end);
  return read_numbers(cursor, type, count, to) ? cursor.at() : nullptr;
}

// The first of `count` numbers that the datatype cannot hold; null if there is none, then all are at `to`.
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

// The bytes of a string without its quotes and escapes; returns how many. The string must be right.
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

// `count` strings as lengths and bytes at `to`, which has the room: an array, or a string by itself.
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

// A growing buffer with a limit; bytes beyond it are counted, but not kept.
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

// Exactly `count` strings as lengths and bytes, at most `most` bytes, into `bytes`, which is cleared.
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
