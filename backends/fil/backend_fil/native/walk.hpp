// Predict rows with a forest.  No Python type, no allocation in the loops over trees.
//
// Eight walks from root to leaf run interleaved, so that their memory accesses overlap: eight rows in one tree, or,
// for the remaining rows, one row in eight trees. Both add up the leaves of a row in double, in the order of the
// trees: an answer does not depend on its batch.
#pragma once

#include "answer.hpp"
#include "layout.hpp"

namespace forest {

constexpr size_t kBlockBytes = 48 * 1024;  // rows of this size stay in the cache during the loop over all trees
constexpr int kMostGroups = 32;

// Reads narrow nodes: for the node at an index its column, the distance to its children, and its threshold.
// WideReader does the same for wide nodes.
struct NarrowReader {
  const NarrowNode* nodes;

  explicit NarrowReader(const Layout& layout) : nodes(layout.narrow.data()) {}
  uint32_t word(size_t at) const { return nodes[at].link; }
  static bool categorical(uint32_t word) { return word & 1; }
  // Return column * 8: the offset of the column in a block. With categories, the low bits are masked.
  template <bool kHasCategories>
  static size_t column(uint32_t word) { return word & (kHasCategories ? 0xfff8u : 0xffffu); }
  size_t delta(size_t, uint32_t word) const { return word >> 16; }
  float threshold(size_t at) const { return nodes[at].threshold; }
};

struct WideReader {
  const WideNode* nodes;

  explicit WideReader(const Layout& layout) : nodes(layout.wide.data()) {}
  uint32_t word(size_t at) const { return nodes[at].column; }
  static bool categorical(uint32_t word) { return word & 1; }
  template <bool kHasCategories>
  static size_t column(uint32_t word) { return word & ~7u; }
  size_t delta(size_t at, uint32_t) const { return nodes[at].delta; }
  float threshold(size_t at) const { return nodes[at].threshold; }
};

// Return whether a value goes right at a node that compares categories, with its entry of Layout::sets. NaN
// goes left.
inline bool category_goes_right(const uint32_t* set, float value) {
  if (std::isnan(value)) return false;
  const uint32_t head = set[0], count = head >> 2;
  if (value < 0 || value > static_cast<float>(kMostCategories)) return head & 1;
  const uint32_t category = static_cast<uint32_t>(value);
  if (head & 2) {
    const bool found = std::binary_search(set + 1, set + 1 + count, category);
    return found != ((head & 1) != 0);
  }
  if (category / 32 >= count) return head & 1;
  return set[1 + category / 32] >> category % 32 & 1;
}

template <class Reader, bool kHasCategories>
struct Walker {
  Reader reader;
  const uint32_t* sets;

  // Move `at` to the child for a row; `values` is column 0 of the row's lane. Return the node's delta: 0 for
  // a leaf, at which `at` stays.
  inline size_t step(size_t& at, const float* values) const {
    const uint32_t word = reader.word(at);
    const size_t delta = reader.delta(at, word);
    const float value = values[Reader::template column<kHasCategories>(word)];
    if (kHasCategories && Reader::categorical(word)) {
      at += delta + category_goes_right(sets + bits_of(reader.threshold(at)), value);
    } else {
      at += delta + (value >= reader.threshold(at));
    }
    return delta;
  }

  // Move the eight positions `at` to their leaves. `kApart` is the distance between the values of two walks:
  // 1 for eight rows, 0 for one row. `even`: take `depth` steps, without a check for leaves.
  template <int kApart>
  inline void walk(size_t* at, const float* values, int32_t depth, bool even) const {
    size_t a = at[0], b = at[1], c = at[2], d = at[3], e = at[4], f = at[5], g = at[6], h = at[7];
    if (even) {
      for (; depth > 0; --depth) {
        step(a, values);
        step(b, values + kApart);
        step(c, values + 2 * kApart);
        step(d, values + 3 * kApart);
        step(e, values + 4 * kApart);
        step(f, values + 5 * kApart);
        step(g, values + 6 * kApart);
        step(h, values + 7 * kApart);
      }
    } else {
      size_t moved;
      do {
        moved = step(a, values);
        moved |= step(b, values + kApart);
        moved |= step(c, values + 2 * kApart);
        moved |= step(d, values + 3 * kApart);
        moved |= step(e, values + 4 * kApart);
        moved |= step(f, values + 5 * kApart);
        moved |= step(g, values + 6 * kApart);
        moved |= step(h, values + 7 * kApart);
      } while (moved != 0);
    }
    at[0] = a, at[1] = b, at[2] = c, at[3] = d, at[4] = e, at[5] = f, at[6] = g, at[7] = h;
  }
};

// Fill a block with the columns of `count` rows, at most eight: block[column * 8 + row]. Column 0 is NaN.
inline void fill_block(const Layout& layout, const float* rows, size_t count, float* block) {
  const size_t features = static_cast<size_t>(layout.features());
  for (int lane = 0; lane < kLanes; ++lane) block[lane] = kNaN;
  for (size_t c = 1; c < layout.columns.size(); ++c) {
    const Column column = layout.columns[c];
    const float* from = rows + column.feature;
    float* to = block + c * kLanes;
    for (size_t row = 0; row < count; ++row) to[row] = float_of(bits_of(from[row * features]) ^ column.sign);
  }
}

template <class Reader, bool kHasCategories>
class Run {
 public:
  Run(const Layout& layout, const Answer& answer)
      : layout_(layout), answer_(answer), walker_{Reader(layout), layout.sets.data()},
        classes_(layout.classes()), columns_(layout.columns.size() * kLanes) {}

  void operator()(const float* rows, size_t count, float* out) const {
    const size_t most = std::max<size_t>(1, std::min<size_t>(kMostGroups, kBlockBytes / (columns_ * sizeof(float))));
    const size_t groups = std::max<size_t>(1, std::min(most, count / kLanes));
    std::vector<float> block(groups * columns_);
    std::vector<double> sums(groups * kLanes * classes_);
    std::vector<double> values(classes_);
    const size_t features = static_cast<size_t>(layout_.features()), width = answer_.width();
    size_t row = 0;
    while (count - row >= kLanes) {
      const size_t now = std::min(groups, (count - row) / kLanes);
      for (size_t g = 0; g < now; ++g) {
        fill_block(layout_, rows + (row + g * kLanes) * features, kLanes, block.data() + g * columns_);
      }
      sum_rows(block.data(), now, sums.data());
      for (size_t i = 0; i < now * kLanes; ++i) {
        const double* of_row = sums.data() + i / kLanes * kLanes * classes_ + i % kLanes;
        finish_row(answer_, of_row, kLanes, values.data(), out + (row + i) * width);
      }
      row += now * kLanes;
    }
    for (; row < count; ++row) {
      fill_block(layout_, rows + row * features, 1, block.data());
      sum_trees(block.data(), sums.data());
      finish_row(answer_, sums.data(), 1, values.data(), out + row * width);
    }
  }

 private:
  // Sum the leaves of groups of eight rows into sums[(group * classes + class) * 8 + lane].
  void sum_rows(const float* block, size_t groups, double* sums) const {
    std::fill(sums, sums + groups * kLanes * classes_, 0.0);
    for (const Tree& tree : layout_.trees) {
      for (size_t g = 0; g < groups; ++g) {
        size_t at[kLanes];
        for (int lane = 0; lane < kLanes; ++lane) at[lane] = tree.root;
        walker_.template walk<1>(at, block + g * columns_, tree.depth, tree.even);
        double* to = sums + g * kLanes * classes_;
        for (int lane = 0; lane < kLanes; ++lane) add(tree, at[lane], to + lane, kLanes);
      }
    }
  }

  // Sum the leaves of one row, in lane 0 of the block, into sums[class].
  void sum_trees(const float* block, double* sums) const {
    std::fill(sums, sums + classes_, 0.0);
    const std::vector<Tree>& trees = layout_.trees;
    for (size_t t = 0; t < trees.size(); t += kLanes) {
      const size_t now = std::min<size_t>(kLanes, trees.size() - t);
      size_t at[kLanes];
      int32_t depth = 0;
      bool even = true;
      for (size_t i = 0; i < kLanes; ++i) {
        const Tree& tree = trees[t + std::min(i, now - 1)];
        at[i] = tree.root;
        depth = std::max(depth, tree.depth);
        even = even && tree.even;
      }
      walker_.template walk<0>(at, block, depth, even);
      for (size_t i = 0; i < now; ++i) add(trees[t + i], at[i], sums, 1);
    }
  }

  inline void add(const Tree& tree, size_t leaf, double* sums, int32_t stride) const {
    const float value = walker_.reader.threshold(leaf);
    if (tree.class_id >= 0) {
      sums[tree.class_id * stride] += value;
      return;
    }
    const float* vector = layout_.vectors.data() + bits_of(value);
    for (int32_t c = 0; c < classes_; ++c) sums[c * stride] += vector[c];
  }

  const Layout& layout_;
  const Answer& answer_;
  Walker<Reader, kHasCategories> walker_;
  int32_t classes_;
  size_t columns_;
};

// Write the predictions of `count` rows of layout.features() values to `out`, answer.width() values per row.
inline void predict(const Layout& layout, const Answer& answer, const float* rows, size_t count, float* out) {
  if (layout.wide.empty()) {
    if (layout.categorical) Run<NarrowReader, true>(layout, answer)(rows, count, out);
    else Run<NarrowReader, false>(layout, answer)(rows, count, out);
  } else {
    if (layout.categorical) Run<WideReader, true>(layout, answer)(rows, count, out);
    else Run<WideReader, false>(layout, answer)(rows, count, out);
  }
}

}  // namespace forest
