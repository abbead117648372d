// Tensors and texts → JSON.
//
// Numbers have the form of JSON; NaN, Infinity and -Infinity are written as in Triton. A float has a point or
// an exponent, so that it is read as a float. Nothing here allocates: the caller provides the memory. Each
// function that writes returns the position after its output.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "datatype.hpp"
#include "shortest_decimal.hpp"

namespace http_json {

// Number of bytes after the output that a function may overwrite: writing whole words is faster.
constexpr size_t kSlack = 64;

// Return the eight digits of a number below 10^8 as bytes 0 to 9, the first in the lowest byte.
inline uint64_t eight_digits_of(uint64_t value) {
  const uint64_t fours = value / 10000 | value % 10000 << 32;
  const uint64_t hundreds = (fours * 10486 >> 20) & 0x7F0000007F;
  const uint64_t pairs = hundreds | (fours - 100 * hundreds) << 16;
  const uint64_t tens = (pairs * 103 >> 10) & 0x000F000F000F000F;
  return tens | (pairs - 10 * tens) << 8;
}

inline void store_digits(char* to, uint64_t digits) {
  digits |= 0x3030303030303030;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  digits = __builtin_bswap64(digits);
#endif
  std::memcpy(to, &digits, sizeof digits);
}

// Write a number in decimal, without leading zeros. May overwrite kSlack bytes after it.
inline char* write_digits(char* to, uint64_t value) {
  constexpr uint64_t kEight = 100000000;
  if (value >= kEight) {
    to = write_digits(to, value / kEight);
    store_digits(to, eight_digits_of(value % kEight));
    return to + 8;
  }
  const uint64_t digits = eight_digits_of(value);
  const int zeros = __builtin_ctzll(digits | uint64_t{1} << 56) / 8;  // 0 itself keeps one
  store_digits(to, digits >> (8 * zeros));
  return to + 8 - zeros;
}

inline char* write_word(char* to, const char* word, size_t size) {
  std::memcpy(to, word, size);
  return to + size;
}

// Write an integer in decimal. May overwrite kSlack bytes after it.
template <class Integer>
char* write_integer(char* to, Integer value) {
  uint64_t digits = static_cast<uint64_t>(value);
  if constexpr (std::is_signed_v<Integer>) {
    if (value < 0) {
      *to++ = '-';
      digits = ~digits + 1;
    }
  }
  return write_digits(to, digits);
}

// The floats that are written without an exponent: from 10^kLeastPoint to below 10^kMostWhole.
template <class Float>
struct FloatForm;
template <>
struct FloatForm<float> {
  static constexpr int kLeastPoint = -6;
  static constexpr int kMostWhole = 13;
};
template <>
struct FloatForm<double> {
  static constexpr int kLeastPoint = -5;
  static constexpr int kMostWhole = 16;
};

inline uint64_t without_zeros(uint64_t digits) {
  if (digits % 100000000 == 0) digits /= 100000000;
  while (digits % 10 == 0) digits /= 10;
  return digits;
}

// Write digits * 10^exponent as a float. `digits` is not 0. May overwrite kSlack bytes after it.
template <class Float>
char* write_decimal(char* to, uint64_t digits, int exponent) {
  using Form = FloatForm<Float>;
  constexpr size_t kCopied = 32;  // more than `text` has digits
  char text[2 * kCopied];
  int count = static_cast<int>(write_digits(text, digits) - text);
  const int point = count + exponent;  // the decimal point is after so many digits
  if (digits % 10 == 0) count = static_cast<int>(write_digits(text, without_zeros(digits)) - text);
  if (0 < point && point <= Form::kMostWhole) {
    if (count <= point) {
      std::memcpy(to, text, kCopied);
      std::memset(to + count, '0', static_cast<size_t>(point - count));
      return write_word(to + point, ".0", 2);
    }
    std::memcpy(to, text, kCopied);
    std::memcpy(to + point + 1, text + point, kCopied);
    to[point] = '.';
    return to + count + 1;
  }
  if (Form::kLeastPoint < point && point <= 0) {
    std::memcpy(to, "0.00000000", 8);
    std::memcpy(to + 2 - point, text, kCopied);
    return to + 2 - point + count;
  }
  *to = text[0];
  to[1] = '.';
  std::memcpy(to + 2, text + 1, kCopied);
  to += count > 1 ? count + 1 : 1;
  to = write_word(to, point > 0 ? "e+" : "e-", 2);
  return write_digits(to, static_cast<uint64_t>(point > 0 ? point - 1 : 1 - point));
}

template <class Float>
char* write_float(char* to, Float value) {
  if (std::isnan(value)) return write_word(to, "NaN", 3);
  *to = '-';  // no branch, since signs are hard to guess
  to += std::signbit(value);
  value = std::fabs(value);
  if (value == 0) return write_word(to, "0.0", 3);
  if (std::isinf(value)) return write_word(to, "Infinity", 8);
  const Decimal decimal = shortest_decimal(value);
  return write_decimal<Float>(to, decimal.digits, decimal.exponent);
}

inline char* write_number(char* to, float value) { return write_float(to, value); }
inline char* write_number(char* to, double value) { return write_float(to, value); }
template <class Integer>
char* write_number(char* to, Integer value) {
  return write_integer(to, value);
}

template <class Number>
Number load(const char* from) {
  char bytes[sizeof(Number)];
  std::memcpy(bytes, from, sizeof bytes);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  std::reverse(bytes, bytes + sizeof bytes);
#endif
  Number value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <class Number>
char* write_numbers(char* to, const char* from, size_t count) {
  *to++ = '[';
  for (size_t i = 0; i < count; ++i, from += sizeof(Number)) {
    to = write_number(to, load<Number>(from));
    *to++ = ',';
  }
  to -= count > 0;
  *to++ = ']';
  return to;
}

inline char* write_truths(char* to, const char* from, size_t count) {
  *to++ = '[';
  for (size_t i = 0; i < count; ++i) {
    to = from[i] ? write_word(to, "true,", 5) : write_word(to, "false,", 6);
  }
  to -= count > 0;
  *to++ = ']';
  return to;
}

// Return an upper bound of the size in bytes of a flat array of `count` numbers, with kSlack.
inline size_t room_for_numbers(DataType type, size_t count) {
  // Of an element and its comma, in the order of DataType.
  constexpr size_t kWidest[] = {6, 4, 6, 11, 21, 5, 7, 12, 21, 0, 18, 25, 0, 0, 0};
  return 2 + count * kWidest[static_cast<int>(type)] + kSlack;
}

// Write `count` numbers, in wire form at `from`, as a flat JSON array; write nothing for FP16, BF16 and
// BYTES.
inline char* write_array(char* to, DataType type, const char* from, size_t count) {
  switch (type) {
    case DataType::kBool: return write_truths(to, from, count);
    case DataType::kUint8: return write_numbers<uint8_t>(to, from, count);
    case DataType::kUint16: return write_numbers<uint16_t>(to, from, count);
    case DataType::kUint32: return write_numbers<uint32_t>(to, from, count);
    case DataType::kUint64: return write_numbers<uint64_t>(to, from, count);
    case DataType::kInt8: return write_numbers<int8_t>(to, from, count);
    case DataType::kInt16: return write_numbers<int16_t>(to, from, count);
    case DataType::kInt32: return write_numbers<int32_t>(to, from, count);
    case DataType::kInt64: return write_numbers<int64_t>(to, from, count);
    case DataType::kFp32: return write_numbers<float>(to, from, count);
    case DataType::kFp64: return write_numbers<double>(to, from, count);
    default: return to;
  }
}

// How a byte is written in a string: 0 for unchanged, 'u' for \u00XX, else the character after a backslash.
constexpr std::array<char, 256> escapes() {
  std::array<char, 256> table{};
  for (size_t i = 0; i < 0x20; ++i) table[i] = 'u';
  table['\b'] = 'b';
  table['\f'] = 'f';
  table['\n'] = 'n';
  table['\r'] = 'r';
  table['\t'] = 't';
  table['"'] = '"';
  table['\\'] = '\\';
  return table;
}
inline constexpr std::array<char, 256> kEscapes = escapes();

// Return the size in bytes of a string as JSON, with its quotes.
inline size_t string_size(const char* from, size_t size) {
  size_t found = size + 2;
  for (size_t i = 0; i < size; ++i) {
    const char escape = kEscapes[static_cast<unsigned char>(from[i])];
    found += escape == 0 ? 0 : escape == 'u' ? 5 : 1;
  }
  return found;
}

// Write a string with its quotes; bytes that are not UTF-8 are written unchanged.
inline char* write_string(char* to, const char* from, size_t size) {
  *to++ = '"';
  for (size_t i = 0; i < size; ++i) {
    const unsigned char byte = static_cast<unsigned char>(from[i]);
    const char escape = kEscapes[byte];
    if (escape == 0) {
      *to++ = static_cast<char>(byte);
      continue;
    }
    *to++ = '\\';
    *to++ = escape;
    if (escape == 'u') {
      to = write_word(to, "00", 2);
      *to++ = static_cast<char>('0' + (byte >> 4));
      *to++ = "0123456789abcdef"[byte & 15];
    }
  }
  *to++ = '"';
  return to;
}

// Call `visit(data, size)` for each BYTES element of a wire form. Return whether it has exactly `count`
// elements.
template <class Visit>
bool each_string(const char* from, size_t size, size_t count, Visit visit) {
  for (; count > 0; --count) {
    if (size < 4) return false;
    const size_t length = load<uint32_t>(from);
    if (length > size - 4) return false;
    visit(from + 4, length);
    from += 4 + length;
    size -= 4 + length;
  }
  return size == 0;
}

// Return the size in bytes of the JSON array of BYTES elements, at most 1 too large; 0 if there are not
// `count`.
inline size_t room_for_strings(const char* from, size_t size, size_t count) {
  size_t room = 2;
  const auto add = [&room](const char* data, size_t length) { room += string_size(data, length) + 1; };
  return each_string(from, size, count, add) ? room : 0;
}

inline char* write_strings(char* to, const char* from, size_t size, size_t count) {
  *to++ = '[';
  each_string(from, size, count, [&to](const char* data, size_t length) {
    to = write_string(to, data, length);
    *to++ = ',';
  });
  to -= count > 0;
  *to++ = ']';
  return to;
}

}  // namespace http_json
