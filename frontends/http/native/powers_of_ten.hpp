// Powers of ten in 128 bits, computed once when the module is loaded.
//
// They take 10 KB; a table of constants in the source would be hard to check.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace http_json {

// Return floor(log2(10^k)), for |k| < 1650.
constexpr int floor_log2_of_power(int k) { return static_cast<int>((int64_t{k} * 1741647) >> 19); }

class PowersOfTen {
 public:
  static constexpr int kLeast = -292;
  static constexpr int kMost = 324;

  // high:low is 10^k * 2^(127 - floor(log2(10^k))), rounded up.
  struct Significand {
    uint64_t high;
    uint64_t low;
  };

  PowersOfTen() {
    Big power{1};
    for (int k = 0; k <= kMost; ++k) {
      table_[k - kLeast] = top(power);
      if (0 < k && -k >= kLeast) table_[-k - kLeast] = reciprocal(power);
      times_ten(power);
    }
  }

  const Significand& operator[](int k) const { return table_[static_cast<size_t>(k - kLeast)]; }

 private:
  static constexpr size_t kWords = 18;
  using Big = std::array<uint64_t, kWords>;  // the lowest word first

  static void times_ten(Big& value) {
    unsigned __int128 carry = 0;
    for (uint64_t& word : value) {
      carry += static_cast<unsigned __int128>(word) * 10;
      word = static_cast<uint64_t>(carry);
      carry >>= 64;
    }
  }

  static int bit_length(const Big& value) {
    for (size_t i = kWords; i-- > 0;) {
      if (value[i] != 0) return static_cast<int>(64 * i) + 64 - __builtin_clzll(value[i]);
    }
    return 0;
  }

  static void twice(Big& value) {
    for (size_t i = kWords; i-- > 1;) value[i] = value[i] << 1 | value[i - 1] >> 63;
    value[0] <<= 1;
  }

  static bool less(const Big& left, const Big& right) {
    for (size_t i = kWords; i-- > 0;) {
      if (left[i] != right[i]) return left[i] < right[i];
    }
    return false;
  }

  static void subtract(Big& from, const Big& value) {
    uint64_t borrow = 0;
    for (size_t i = 0; i < kWords; ++i) {
      const unsigned __int128 taken = static_cast<unsigned __int128>(value[i]) + borrow;
      borrow = taken > from[i];
      from[i] -= static_cast<uint64_t>(taken);
    }
  }

  static Significand rounded_up(Significand value, bool rest) {
    if (rest && ++value.low == 0) ++value.high;
    return value;
  }

  static bool bit(const Big& value, int at) {
    return at >= 0 && (value[static_cast<size_t>(at) / 64] >> (at % 64) & 1);
  }

  // Return the upper 128 bits of `value`, rounded up.
  static Significand top(const Big& value) {
    const int length = bit_length(value);
    Significand found{0, 0};
    for (int i = 0; i < 128; ++i) {
      found.high = found.high << 1 | found.low >> 63;
      found.low = found.low << 1 | bit(value, length - 1 - i);
    }
    bool rest = false;
    for (int at = length - 129; at >= 0 && !rest; --at) rest = bit(value, at);
    return rounded_up(found, rest);
  }

  // Return the upper 128 bits of 1 / `value`, rounded up, by long division; `value` is not a power of two.
  static Significand reciprocal(const Big& value) {
    Big rest{};
    const int length = bit_length(value);
    rest[static_cast<size_t>(length - 1) / 64] = uint64_t{1} << ((length - 1) % 64);
    Significand found{0, 0};
    for (int i = 0; i < 128; ++i) {
      twice(rest);
      const bool one = !less(rest, value);
      if (one) subtract(rest, value);
      found.high = found.high << 1 | found.low >> 63;
      found.low = found.low << 1 | one;
    }
    return rounded_up(found, true);
  }

  std::array<Significand, kMost - kLeast + 1> table_;
};

inline const PowersOfTen kPowersOfTen;

}  // namespace http_json
