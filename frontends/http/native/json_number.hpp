// JSON numbers → integers and doubles.
//
// A double is the one nearest to the text, ties to even; NaN, Infinity and Inf are numbers as in Triton.
// Finite text beyond the range of a double is refused. "-0" is an integer, which has no sign.
#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <system_error>
#include <type_traits>

#include "nearest_double.hpp"

namespace http_json {

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// Powers of ten that a double holds exactly.
constexpr double kExactPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr int kMostExactPower = 22;
constexpr uint64_t kMostExactInteger = uint64_t{1} << 53;
// So many decimal digits always fit into 64 bits.
constexpr int kSafeDigits = 19;

// Whether the eight bytes of `chunk` are digits; its first byte in memory is the lowest.
inline bool eight_digits(uint64_t chunk) {
  return ((chunk & 0xF0F0F0F0F0F0F0F0) |
          (((chunk + 0x0606060606060606) & 0xF0F0F0F0F0F0F0F0) >> 4)) == 0x3333333333333333;
}

// Return the value of eight digits, as in eight_digits: pairs, then fours, then all, each by one
// multiplication.
inline uint64_t value_of_eight(uint64_t chunk) {
  chunk = (chunk & 0x0F0F0F0F0F0F0F0F) * 2561 >> 8;
  chunk = (chunk & 0x00FF00FF00FF00FF) * 6553601 >> 16;
  return (chunk & 0x0000FFFF0000FFFF) * 42949672960001 >> 32;
}

// Append the digits from `at` on to `value`, which may overflow; move `at` after them.
inline void read_digits(const char*& at, const char* end, uint64_t& value) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  while (end - at >= 8) {
    uint64_t chunk;
    std::memcpy(&chunk, at, 8);
    if (!eight_digits(chunk)) break;
    value = value * 100000000 + value_of_eight(chunk);
    at += 8;
  }
#endif
  while (at < end && is_digit(*at)) value = value * 10 + static_cast<uint64_t>(*at++ - '0');
}

template <size_t N>
bool take_literal(const char*& at, const char* end, const char (&word)[N]) {
  if (static_cast<size_t>(end - at) < N - 1 || std::memcmp(at, word, N - 1) != 0) return false;
  at += N - 1;
  return true;
}

inline bool read_not_finite(const char*& at, const char* end, bool negative, double& value) {
  if (take_literal(at, end, "NaN")) {
    value = std::numeric_limits<double>::quiet_NaN();
    return true;
  }
  if (!take_literal(at, end, "Infinity") && !take_literal(at, end, "Inf")) return false;
  value = negative ? -HUGE_VAL : HUGE_VAL;
  return true;
}

// Add the exponent that follows its "e" to `exponent`; a huge one is replaced by a smaller, also huge one.
// Return whether there are digits.
inline bool read_exponent(const char*& at, const char* end, int64_t& exponent) {
  bool negative = false;
  if (at < end && (*at == '-' || *at == '+')) negative = *at++ == '-';
  const char* first = at;
  int64_t value = 0;
  for (; at < end && is_digit(*at); ++at) {
    if (value < 1000000) value = value * 10 + (*at - '0');
  }
  exponent += negative ? -value : value;
  return at != first;
}

// Skip a number, and set `integral`. Return null, or RapidJSON's error text, with `at` at the error. NaN, Inf
// and Infinity are errors here.
inline const char* skip_number(const char*& at, const char* end, bool& integral) {
  const auto take_digits = [&] {
    const char* const first = at;
    while (at < end && is_digit(*at)) ++at;
    return at != first;
  };
  integral = true;
  at += at < end && *at == '-';
  if (at < end && *at == '0') ++at;
  else if (!take_digits()) return "Invalid value";
  if (at < end && *at == '.') {
    integral = false;
    ++at;
    if (!take_digits()) return "Miss fraction part in number";
  }
  if (at < end && (*at == 'e' || *at == 'E')) {
    integral = false;
    ++at;
    at += at < end && (*at == '-' || *at == '+');
    if (!take_digits()) return "Miss exponent in number";
  }
  return nullptr;
}

// Parse a JSON number, NaN, Inf or Infinity as a double, and move `at` after it. Return false for an invalid
// one. The caller checks the text after it.
inline bool read_real(const char*& at, const char* end, double& value) {
  const char* const begin = at;
  const bool negative = at < end && *at == '-';
  at += negative;
  if (at == end || !is_digit(*at)) return read_not_finite(at, end, negative, value);
  const char* first = at;
  uint64_t digits = 0;
  while (at < end && is_digit(*at)) digits = digits * 10 + static_cast<uint64_t>(*at++ - '0');
  const std::ptrdiff_t whole = at - first;
  const bool zero = *first == '0';
  if (zero && whole > 1) return false;
  std::ptrdiff_t fraction = 0, zeros = 0;
  int64_t exponent = 0;
  bool integral = true;
  if (at < end && *at == '.') {
    first = ++at;
    if (zero) {  // those in front are no digits of the value
      while (at < end && *at == '0') ++at;
      zeros = at - first + 1;
    }
    read_digits(at, end, digits);
    fraction = at - first;
    if (fraction == 0) return false;
    integral = false;
  }
  if (at < end && (*at == 'e' || *at == 'E')) {
    ++at;
    if (!read_exponent(at, end, exponent)) return false;
    integral = false;
  }
  exponent -= fraction;
  double found;
  if (whole + fraction - zeros > kSafeDigits) {
    found = nearest_by_text(begin + negative, at);
  } else if (digits == 0) {
    found = 0;
  } else if (digits <= kMostExactInteger && -kMostExactPower <= exponent && exponent <= kMostExactPower) {
    // One operation on exact operands is rounded once.
    found = static_cast<double>(digits);
    found = exponent < 0 ? found / kExactPowers[-exponent] : found * kExactPowers[exponent];
  } else if (!nearest_by_product(digits, exponent, found)) {
    found = nearest_by_text(begin + negative, at);
  }
  value = negative && !(integral && zero) ? -found : found;
  return std::isfinite(value);
}

// Parse an integer into `value`, and move `at` after it. Return false if it exceeds the range of the type, or
// has a fraction or an exponent.
template <class Integer>
bool read_integer(const char*& at, const char* end, Integer& value) {
  constexpr bool kSigned = std::is_signed_v<Integer>;
  const bool negative = at < end && *at == '-';
  const char* const first = at + negative;
  Integer found = 0;
  const std::from_chars_result result = std::from_chars(kSigned ? at : first, end, found);
  at = result.ptr;
  if (result.ec != std::errc() || (*first == '0' && at - first > 1)) return false;
  if (at < end && (*at == '.' || *at == 'e' || *at == 'E')) return false;
  value = found;
  return kSigned || !negative || found == 0;
}

}  // namespace http_json
