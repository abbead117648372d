// Layout::add: append one tree to the flat arrays.
#pragma once

#include <algorithm>
#include <deque>

#include "layout.hpp"

namespace forest {

inline uint32_t Layout::column(uint32_t feature, bool negated) {
  uint64_t key = static_cast<uint64_t>(feature) << 1 | negated;
  auto [place, is_new] = known_columns_.try_emplace(key, static_cast<uint32_t>(columns.size()));
  if (is_new) {
    if (columns.size() >= (1u << 28)) throw std::invalid_argument("it asks for more than 2^28 columns");
    columns.push_back({feature, negated ? 0x80000000u : 0u});
  }
  return place->second;
}

inline Layout::Question Layout::numerical(const Source& tree, int32_t node) {
  const double threshold = tree.threshold[node];
  bool swapped = false;
  float bound;
  bool always_left = false;
  switch (tree.comparison[node]) {
    case kGreaterEqual: swapped = true; [[fallthrough]];
    case kLess: bound = float_not_below(threshold); break;
    case kGreater: swapped = true; [[fallthrough]];
    case kLessEqual:
      bound = float_above(threshold);
      always_left = threshold == static_cast<double>(kInfinity);
      break;
    default:
      throw std::invalid_argument(
          "node " + std::to_string(node) + " compares with operator number " +
          std::to_string(tree.comparison[node]) + "; there are <, <=, > and >=");
  }
  if (std::isnan(threshold)) {  // every comparison with NaN is false
    bound = -kInfinity;
    swapped = false;
  }
  const uint32_t feature = static_cast<uint32_t>(tree.feature[node]);
  // The question now sends x < bound to the left; `swapped` exchanges the children. A missing value goes left of
  // the question and must reach the default child.
  const bool missing_left = (tree.default_left[node] != 0) != swapped;
  if (always_left) {  // no bound is above infinity: compare x >= -infinity, always true, with exchanged children
    bound = -kInfinity;
    if (!missing_left) return {bound, column(feature, false), !swapped};
    return {bound, 0, swapped};  // column 0 is NaN: every value goes left
  }
  if (missing_left) return {bound, column(feature, false), swapped};
  // x < bound  ⟺  -x > -bound  ⟺  -x >= the float above -bound: right of the question of exchanged children.
  if (bound == -kInfinity) return {bound, 0, !swapped};  // every value and NaN go to the same child
  return {std::nextafterf(-bound, kInfinity), column(feature, true), !swapped};
}

// Append the categories of a node to `sets`: a word count << 2 | sorted << 1 | outside, then `count` words: a
// bitset, or the sorted categories. A bit is set if its category goes to the right; `outside` is the bit of
// all others.
inline Layout::Question Layout::categories(const Source& tree, int32_t node) {
  const uint64_t begin = tree.category_begin[node], end = tree.category_end[node];
  if (begin > end || end > tree.category_count) throw std::invalid_argument("categories lie outside of their list");
  const bool swapped = tree.default_left[node] == 0;  // a missing value goes left of the question
  const bool listed_right = (tree.category_right[node] != 0) != swapped;
  std::vector<uint32_t> listed;
  for (uint64_t i = begin; i < end; ++i) {
    if (tree.categories[i] <= kMostCategories) listed.push_back(tree.categories[i]);
  }
  std::sort(listed.begin(), listed.end());
  listed.erase(std::unique(listed.begin(), listed.end()), listed.end());
  const uint64_t words = listed.empty() ? 0 : listed.back() / 32 + 1;
  const bool sorted = words > 4 * listed.size() + 8;
  const uint64_t count = sorted ? listed.size() : words;
  const uint64_t place = sets.size();
  if (place + count >= (1ull << 31)) throw std::invalid_argument("it has too many categories");
  sets.push_back(static_cast<uint32_t>(count << 2) | (sorted ? 2u : 0u) | (listed_right ? 0u : 1u));
  if (sorted) {
    sets.insert(sets.end(), listed.begin(), listed.end());
  } else {
    sets.resize(place + 1 + words, listed_right ? 0u : ~0u);
    for (uint32_t each : listed) sets[place + 1 + each / 32] ^= 1u << each % 32;
  }
  categorical = true;
  return {float_of(static_cast<uint32_t>(place)),
          column(static_cast<uint32_t>(tree.feature[node]), false), swapped};
}

inline Layout::Question Layout::question(const Source& tree, int32_t node) {
  if (tree.feature[node] < 0 || tree.feature[node] >= features_) {
    throw std::invalid_argument("node " + std::to_string(node) + " asks for feature " +
                                std::to_string(tree.feature[node]) + " of " + std::to_string(features_));
  }
  return tree.kind[node] == kCategorical ? categories(tree, node) : numerical(tree, node);
}

inline float Layout::leaf(const Source& tree, int32_t node, int32_t class_id) {
  if (class_id >= 0) return static_cast<float>(tree.leaf[node]);
  const uint64_t begin = tree.vector_begin[node], end = tree.vector_end[node];
  if (begin > end || end > tree.vector_count || end - begin != static_cast<uint64_t>(classes_)) {
    throw std::invalid_argument("leaf " + std::to_string(node) + " has " + std::to_string(end - begin) +
                                " values for " + std::to_string(classes_) + " classes");
  }
  const size_t place = vectors.size();
  if (place + classes_ >= (1ull << 31)) throw std::invalid_argument("its leaves have too many values");
  for (uint64_t i = begin; i < end; ++i) vectors.push_back(static_cast<float>(tree.vectors[i]));
  return float_of(static_cast<uint32_t>(place));
}

inline void Layout::add(const Source& tree, int32_t class_id) {
  struct Waiting {
    int32_t first, second;  // children, of the source
    uint32_t parent;        // placed
    int32_t depth;
  };
  wide.resize((wide.size() + kLine - 1) / kLine * kLine);
  if (with_cover_) cover.resize(wide.size());
  const uint32_t start = static_cast<uint32_t>(wide.size());
  std::deque<Waiting> far;   // pairs that start a new cache line
  std::deque<Waiting> near;  // pairs for the rest of the current line
  int32_t placed = 0, depth = 0;
  double depths = 0;
  int32_t leaves = 0;

  auto place = [&](int32_t node, uint32_t at, int32_t level) {
    if (node < 0 || node >= tree.count || ++placed > tree.count) {
      throw std::invalid_argument("its nodes form no tree");
    }
    WideNode& made = wide[at];
    if (with_cover_) cover[at] = tree.cover ? static_cast<float>(tree.cover[node]) : kNaN;
    if (tree.left[node] < 0) {
      made = {leaf(tree, node, class_id), 0, 0, 0};
      depth = std::max(depth, level);
      depths += level;
      ++leaves;
      return;
    }
    const Question asked = question(tree, node);
    made = {asked.threshold, asked.column << 3 | (tree.kind[node] == kCategorical ? 1u : 0u), 0, 0};
    const int32_t left = tree.left[node], right = tree.right[node];
    near.push_back({asked.swapped ? right : left, asked.swapped ? left : right, at, level + 1});
  };

  wide.resize(start + 2);  // the root is at the odd index, so that pairs start at even ones
  if (with_cover_) cover.resize(wide.size());
  place(0, start + 1, 0);
  while (!near.empty() || !far.empty()) {
    if (wide.size() % kLine == 0) {  // the line is full: continue with the oldest pair
      far.insert(far.end(), near.begin(), near.end());
      near.clear();
    }
    if (near.empty()) {
      near.push_back(far.front());
      far.pop_front();
    }
    const Waiting pair = near.front();
    near.pop_front();
    const size_t at = wide.size();
    if (at + 2 >= (1ull << 31)) throw std::invalid_argument("it has more than 2^31 nodes");
    wide.resize(at + 2);
    if (with_cover_) cover.resize(wide.size());
    wide[pair.parent].delta = static_cast<uint32_t>(at - pair.parent);
    place(pair.first, static_cast<uint32_t>(at), pair.depth);
    place(pair.second, static_cast<uint32_t>(at + 1), pair.depth);
  }
  const double mean = depths / leaves;
  trees.push_back({start + 1, class_id, depth, mean >= 0.7 * depth});
  deepest = std::max(deepest, depth);
  steps_of_a_row += trees.back().even ? depth : mean;
}

inline void Layout::finish() {
  uint32_t most = 0;
  for (const WideNode& node : wide) most = std::max(most, node.delta);
  if (most < (1u << 16) && columns.size() << 3 <= (1u << 16)) {
    narrow.reserve(wide.size());
    for (const WideNode& node : wide) narrow.push_back({node.threshold, node.delta << 16 | node.column});
    std::vector<WideNode>().swap(wide);
  }
}

}  // namespace forest
