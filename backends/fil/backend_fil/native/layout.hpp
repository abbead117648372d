// A forest as it lies in memory, and how a tree comes to lie there.  No Python type.
//
// Comparison. Every inner node asks one thing of one column: `x >= threshold` goes right. What libraries ask is
// written that way when a tree is added, and it stays exact for every float32 value:
//   x <  t   left   →  threshold = the smallest float not below t
//   x <= t   left   →  threshold = the smallest float above t
//   x >, >=  left   →  children swapped
// A NaN compares false, so it goes left. Where a missing value is to go right, the children are swapped and the
// node asks -x: a column may hold a feature or its negation. So missing values cost nothing.
//
// Place. The children of a node lie side by side, behind it, as near as its cache line allows: right = left + 1,
// left = node + delta. A leaf has delta 0 and asks column 0, which is NaN: who is there stays there, so several
// rows or trees can walk together without a branch.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace forest {

constexpr int kLanes = 8;       // rows or trees that walk together; a column of a block holds as many values
constexpr int kLine = 8;        // narrow nodes of a cache line
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr uint32_t kMostCategories = 1u << 24;  // float32 counts no further

// Eight bytes: link = delta << 16 | column << 3 | categorical. The value of a leaf is its threshold.
struct NarrowNode {
  float threshold;
  uint32_t link;
};

// For forests whose columns or distances do not fit into 16 bits.
struct WideNode {
  float threshold;
  uint32_t column;  // column << 3 | categorical
  uint32_t delta;
  uint32_t unused;
};

// One tree as treelite describes it; arrays of `count` nodes, borrowed.
struct Source {
  int32_t count;
  const int32_t* left;           // -1 of a leaf
  const int32_t* right;
  const int32_t* feature;
  const uint8_t* default_left;
  const int8_t* kind;            // 2 where categories are asked for
  const int8_t* comparison;      // Comparison
  const double* threshold;
  const double* leaf;            // values of leaves
  const double* vectors;         // of leaves with a value for each class
  size_t vector_count;
  const uint64_t* vector_begin;
  const uint64_t* vector_end;
  const uint32_t* categories;
  size_t category_count;
  const uint64_t* category_begin;
  const uint64_t* category_end;
  const uint8_t* category_right;  // whether the categories of the list go right
  const double* cover;            // training weight of each node; null if unknown
};

enum Comparison : int8_t { kEqual = 1, kLess = 2, kLessEqual = 3, kGreater = 4, kGreaterEqual = 5 };
constexpr int8_t kCategorical = 2;

struct Tree {
  uint32_t root;
  int32_t class_id;      // -1: a leaf has a value for each class
  int32_t depth;         // of the deepest leaf
  bool even;             // leaves lie about equally deep: walk `depth` steps and look only then
};

struct Column {
  uint32_t feature;
  uint32_t sign;         // 0x80000000 for the negation
};

inline float float_not_below(double value) {
  float nearest = static_cast<float>(value);
  return static_cast<double>(nearest) >= value ? nearest : std::nextafterf(nearest, kInfinity);
}

inline float float_above(double value) {
  float nearest = static_cast<float>(value);
  return static_cast<double>(nearest) > value ? nearest : std::nextafterf(nearest, kInfinity);
}

inline uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

class Layout {
 public:
  Layout(int32_t features, int32_t classes, bool with_cover)
      : features_(features), classes_(classes), with_cover_(with_cover) {
    columns.push_back({0, 0});  // column 0: NaN
  }

  // Raises std::invalid_argument for a tree that is none, and for a question that is not known.
  void add(const Source& tree, int32_t class_id);

  // After the last tree: choose narrow nodes if all fits into them.
  void finish();

  int32_t features() const { return features_; }
  int32_t classes() const { return classes_; }

  std::vector<Column> columns;
  std::vector<Tree> trees;
  std::vector<WideNode> wide;         // given up by finish() for narrow ones
  std::vector<NarrowNode> narrow;
  std::vector<float> vectors;         // leaves with several values: threshold holds the bits of their place
  std::vector<uint32_t> sets;         // categories: threshold holds the bits of their place
  std::vector<float> cover;           // by node, if asked for
  bool categorical = false;
  int32_t deepest = 0;
  double steps_of_a_row = 0;          // comparisons that one row takes, about

 private:
  struct Question {
    float threshold;
    uint32_t column;
    bool swapped;
  };
  Question question(const Source& tree, int32_t node);
  Question numerical(const Source& tree, int32_t node);
  Question categories(const Source& tree, int32_t node);
  float leaf(const Source& tree, int32_t node, int32_t class_id);
  uint32_t column(uint32_t feature, bool negated);

  int32_t features_;
  int32_t classes_;
  bool with_cover_;
  std::map<uint64_t, uint32_t> known_columns_;
};

}  // namespace forest
