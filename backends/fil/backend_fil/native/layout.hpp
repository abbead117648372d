// The memory layout of a forest.  No Python type.
//
// Comparison. Every inner node compares one column: `x >= threshold` goes right. `add` converts the comparisons of
// the libraries to this form, exactly for every float32 value:
//   x <  t   left   →  threshold = the smallest float not below t
//   x <= t   left   →  threshold = the smallest float above t
//   x >, >=  left   →  children swapped
// A NaN compares false, so it goes left. If a missing value must go right, the children are swapped and the node
// compares -x: a column holds a feature or its negation. Missing values therefore need no extra comparison.
//
// Place. The children of a node are neighbours, behind it, as near as its cache line allows: right = left + 1,
// left = node + delta. A leaf has delta 0 and compares column 0, which is NaN: a step at a leaf stays there, so
// several rows or trees step together without a branch.
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

constexpr int kLanes = 8;       // rows or trees that step together; a column of a block holds as many values
constexpr int kLine = 8;        // narrow nodes per cache line
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr uint32_t kMostCategories = 1u << 24;  // float32 has all integers up to here

// A node in eight bytes: link = delta << 16 | column << 3 | categorical. A leaf has delta 0, and its value in
// `threshold`.
struct NarrowNode {
  float threshold;
  uint32_t link;
};

// A node of a forest whose columns or distances do not fit into 16 bits.
struct WideNode {
  float threshold;
  uint32_t column;  // column << 3 | categorical
  uint32_t delta;
  uint32_t unused;
};

// One tree as treelite has it: arrays of `count` nodes, which the caller owns.
struct Source {
  int32_t count;
  const int32_t* left;           // -1 for a leaf
  const int32_t* right;
  const int32_t* feature;
  const uint8_t* default_left;
  const int8_t* kind;            // kCategorical for a node that compares categories
  const int8_t* comparison;      // Comparison
  const double* threshold;
  const double* leaf;            // values of leaves
  const double* vectors;         // values of leaves with a value for each class
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
  bool even;             // leaves are about equally deep: take `depth` steps without a check for a leaf
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

  // Append a copy of one tree. Throws std::invalid_argument for nodes that do not form a tree, an unknown
  // feature or comparison, and categories or leaf vectors that do not fit.
  void add(const Source& tree, int32_t class_id);

  // Convert all nodes to narrow ones if columns and distances fit. Call it once, after the last tree.
  void finish();

  int32_t features() const { return features_; }
  int32_t classes() const { return classes_; }

  std::vector<Column> columns;
  std::vector<Tree> trees;
  std::vector<WideNode> wide;         // empty after finish() if the nodes are narrow
  std::vector<NarrowNode> narrow;
  std::vector<float> vectors;         // values of leaves with several; threshold holds the bits of their index
  std::vector<uint32_t> sets;         // categories; threshold holds the bits of their index
  std::vector<float> cover;           // by node, with with_cover
  bool categorical = false;
  int32_t deepest = 0;
  double steps_of_a_row = 0;          // approximate number of comparisons per row

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
