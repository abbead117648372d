// Floats → the fewest decimal digits that give the same float back, and of those the nearest.
//
// The method is Schubfach (R. Giulietti, "The Schubfach way to render doubles", 2020): with k such that
// the interval that rounds to the float holds one or two multiples of 10^k, the ends of the interval
// are scaled by 10^-k in one multiplication each, rounded to odd, and compared.
#pragma once

#include <cstdint>
#include <cstring>

#include "powers_of_ten.hpp"

namespace http_json {

// The value digits * 10^exponent. `digits` may end in zeros.
struct Decimal {
  uint64_t digits;
  int exponent;
};

template <class Float>
struct FloatLayout;

template <>
struct FloatLayout<float> {
  using Bits = uint32_t;
  static constexpr int kFraction = 23;
  static constexpr int kBias = 150;  // of the exponent of an integral significand

  // Return the upper half of value * power, rounded to odd: the last bit is set if bits were lost.
  static uint32_t scaled(const PowersOfTen::Significand& power, uint32_t value) {
    const uint64_t rounded_up = power.high + (power.low != 0);
    const unsigned __int128 product = static_cast<unsigned __int128>(rounded_up) * value;
    const uint32_t lost = static_cast<uint32_t>(product >> 32);
    return static_cast<uint32_t>(product >> 64) | (lost > 1);
  }
};

template <>
struct FloatLayout<double> {
  using Bits = uint64_t;
  static constexpr int kFraction = 52;
  static constexpr int kBias = 1075;

  static uint64_t scaled(const PowersOfTen::Significand& power, uint64_t value) {
    const unsigned __int128 low = static_cast<unsigned __int128>(power.low) * value;
    const unsigned __int128 product =
        static_cast<unsigned __int128>(power.high) * value + static_cast<uint64_t>(low >> 64);
    return static_cast<uint64_t>(product >> 64) | (static_cast<uint64_t>(product) > 1);
  }
};

// Return the fewest digits that parse to `value`, and of those the nearest. `value` is finite and above 0.
template <class Float>
Decimal shortest_decimal(Float value) {
  using Layout = FloatLayout<Float>;
  using Bits = typename Layout::Bits;
  Bits bits;
  std::memcpy(&bits, &value, sizeof bits);
  const Bits fraction = bits & ((Bits{1} << Layout::kFraction) - 1);
  const int biased = static_cast<int>(bits >> Layout::kFraction);
  const Bits c = biased != 0 ? fraction | Bits{1} << Layout::kFraction : fraction;
  const int q = (biased != 0 ? biased : 1) - Layout::kBias;  // value = c * 2^q
  if (q <= 0 && q > -Layout::kFraction - 1 && (c & ((Bits{1} << -q) - 1)) == 0) {
    return {static_cast<uint64_t>(c >> -q), 0};
  }
  const bool even = c % 2 == 0;  // then the ends of the interval belong to it
  const bool closer_below = fraction == 0 && biased > 1;
  // floor(log10(2^q)), or floor(log10(3/4 * 2^q)).
  const int k = (q * 1262611 - (closer_below ? 524031 : 0)) >> 22;
  const int shift = q + floor_log2_of_power(-k) + 1;
  const PowersOfTen::Significand& power = kPowersOfTen[-k];
  const Bits lower = Layout::scaled(power, (4 * c - 2 + closer_below) << shift) + !even;
  const Bits middle = Layout::scaled(power, (4 * c) << shift);
  const Bits upper = Layout::scaled(power, (4 * c + 2) << shift) - !even;
  const Bits below = middle / 4;
  if (below >= 10) {
    const Bits tenth = below / 10;  // one digit less, if one of the two neighbours is within
    const bool down = lower <= 40 * tenth;
    const bool up = 40 * tenth + 40 <= upper;
    if (down != up) return {static_cast<uint64_t>(tenth + up), k + 1};
  }
  const bool down = lower <= 4 * below;
  const bool up = 4 * below + 4 <= upper;
  if (down != up) return {static_cast<uint64_t>(below + up), k};
  const Bits half = 4 * below + 2;
  const bool round_up = middle > half || (middle == half && below % 2 != 0);
  return {static_cast<uint64_t>(below + round_up), k};
}

}  // namespace http_json
