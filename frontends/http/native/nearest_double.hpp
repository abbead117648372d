// Decimal digits and an exponent → the nearest double, ties to even.
//
// The product of the digits with a power of ten of 128 bits determines how to round for all numbers but those
// next to the middle between two doubles: the way of Lemire, "Number parsing at a gigabyte per second",
// Software: Practice and Experience 51 (2021). The C library parses the text of the others.
#pragma once

#include <locale.h>
#include <stdlib.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif

#include <cstdint>
#include <cstring>
#include <string>

#include "powers_of_ten.hpp"

namespace http_json {

constexpr int kDoubleBits = 53;
constexpr int kDoubleBias = 1023;
constexpr int kMostBiased = 2046;

// Set `value` to the double nearest to digits * 10^exponent, and return true; return false if this method
// cannot decide. `digits` is not 0.
inline bool nearest_by_product(uint64_t digits, int64_t exponent, double& value) {
  if (exponent < PowersOfTen::kLeast || exponent > PowersOfTen::kMost) return false;
  const int k = static_cast<int>(exponent);
  const PowersOfTen::Significand& power = kPowersOfTen[k];
  const int shift = __builtin_clzll(digits);
  digits <<= shift;
  // power - 1 < the exact power <= power, so the exact product, in units of the 64 bits that are dropped here,
  // is less than one away from high:low.
  const unsigned __int128 lower = static_cast<unsigned __int128>(digits) * power.low >> 64;
  const unsigned __int128 product = static_cast<unsigned __int128>(digits) * power.high + lower;
  const uint64_t high = static_cast<uint64_t>(product >> 64), low = static_cast<uint64_t>(product);
  const int carry = static_cast<int>(high >> 63);
  const int dropped = 64 - kDoubleBits - 1 + carry;
  const uint64_t half = uint64_t{1} << (dropped - 1);
  const uint64_t rest = high & (2 * half - 1);
  if ((rest == half && low <= 1) || (rest == half - 1 && low == ~uint64_t{0})) return false;
  uint64_t significand = (high >> dropped) + (rest >= half);
  int biased = kDoubleBias + 63 + carry + floor_log2_of_power(k) - shift;
  if (significand >> kDoubleBits) {
    significand >>= 1;
    ++biased;
  }
  if (biased < 1 || biased > kMostBiased) return false;
  const uint64_t bits = static_cast<uint64_t>(biased) << (kDoubleBits - 1) |
                        (significand & ((uint64_t{1} << (kDoubleBits - 1)) - 1));
  std::memcpy(&value, &bits, sizeof value);
  return true;
}

// Return the double nearest to the number in [begin, end), which must have the form of JSON. Not std::from_chars: the
// libstdc++ of GCC 8 has none for a double.
inline double nearest_by_text(const char* begin, const char* end) {
  static const locale_t points = newlocale(LC_NUMERIC_MASK, "C", nullptr);  // a process may have decimal commas
  return strtod_l(std::string(begin, end).c_str(), nullptr, points);
}

}  // namespace http_json
