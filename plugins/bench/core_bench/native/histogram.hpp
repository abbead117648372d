// Histogram: counts of times in nanoseconds, in 39 KB whatever their number.
//
// A bucket is at most 1/128 of its values wide, and a quantile is the middle of its bucket: its relative error is
// below 0.4 %. Count, sum, minimum and maximum are exact. Times above 2.4 hours count as that.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench {

class Histogram {
 public:
  static constexpr int kBits = 7;
  static constexpr int64_t kHalf = int64_t(1) << kBits;  // buckets for each power of two
  static constexpr int kMostBits = 43;
  static constexpr int64_t kMost = (int64_t(1) << kMostBits) - 1;
  static constexpr size_t kBuckets = size_t(kMostBits - kBits + 1) * kHalf;

  Histogram() : buckets_(kBuckets, 0) {}

  void add(int64_t value) {
    value = std::clamp<int64_t>(value, 0, kMost);
    ++buckets_[index(value)];
    ++count_;
    sum_ += double(value);
    low_ = std::min(low_, value);
    high_ = std::max(high_, value);
  }

  void merge(const Histogram& other) {
    for (size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
    count_ += other.count_;
    sum_ += other.sum_;
    low_ = std::min(low_, other.low_);
    high_ = std::max(high_, other.high_);
  }

  // The value of rank ceil(q * count), 0 <= q <= 1; 0 without values.
  int64_t quantile(double q) const {
    if (count_ == 0) return 0;
    const uint64_t rank =
        std::clamp<uint64_t>(uint64_t(std::ceil(q * double(count_) - 1e-9)), 1, count_);
    uint64_t seen = 0;
    for (size_t i = 0; i < kBuckets; ++i) {
      seen += buckets_[i];
      if (seen >= rank) return std::clamp(middle(i), low_, high_);
    }
    return high_;
  }

  uint64_t count() const { return count_; }
  double sum() const { return sum_; }
  int64_t low() const { return count_ ? low_ : 0; }
  int64_t high() const { return high_; }
  uint64_t bucket(size_t i) const { return buckets_[i]; }

  // The smallest value of a bucket.
  static int64_t begin(size_t i) {
    if (i < size_t(2 * kHalf)) return int64_t(i);
    const int shift = int(i / kHalf) - 1;
    return (int64_t(i % kHalf) + kHalf) << shift;
  }

 private:
  static size_t index(int64_t value) {
    if (value < 2 * kHalf) return size_t(value);
    const int shift = 63 - __builtin_clzll(uint64_t(value)) - kBits;
    return size_t(shift + 1) * kHalf + size_t(value >> shift) - kHalf;
  }

  static int64_t middle(size_t i) {
    const int64_t first = begin(i);
    const int64_t next = i + 1 < kBuckets ? begin(i + 1) : kMost;
    return first + (next - first - 1) / 2;
  }

  std::vector<uint64_t> buckets_;
  uint64_t count_ = 0;
  double sum_ = 0;
  int64_t low_ = kMost;
  int64_t high_ = 0;
};

}  // namespace bench
