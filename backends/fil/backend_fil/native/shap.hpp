// Shapley values: what each feature of a row adds to its margin, relative to the expectation over the training rows,
// which the weights (covers) of the nodes give.  Lundberg, Erion, Lee: "Consistent individualized feature attribution
// for tree ensembles", arXiv:1802.03888, algorithm 2; no Python type.
//
// A path has the features that the nodes above a node compare. For each one, `unknown` is the share of training rows
// that go this way, `known` is whether this row goes this way, and `weight` of step i is the total weight of the
// subsets of the path with i features.
#pragma once

#include "walk.hpp"

namespace forest {

constexpr int32_t kDeepestShap = 32;

class Shap {
 public:
  // A call adds the Shapley values of one row to phi[classes][features + 1]; the last value of a class is the
  // expectation. The layout must have covers, and at most kDeepestShap levels.
  Shap(const Layout& layout, const Answer& answer) : layout_(layout), answer_(answer) {}

  void operator()(const float* row, double* phi) {
    const size_t columns = layout_.columns.size() * kLanes;
    block_.resize(columns);
    fill_block(layout_, row, 1, block_.data());
    phi_ = phi;
    for (const Tree& tree : layout_.trees) {
      tree_ = &tree;
      Path path;
      descend(tree.root, path, 1, true, -1);
    }
  }

 private:
  struct Step {
    int32_t feature;  // -1 for the root
    double unknown, known, weight;
  };
  struct Path {
    Step steps[kDeepestShap + 2];
    int32_t length = 0;
  };
  struct Node {
    uint32_t column, delta;
    float threshold;
    bool categorical;
  };

  Node node(uint32_t at) const {
    if (!layout_.wide.empty()) {
      const WideNode& found = layout_.wide[at];
      return {found.column & ~7u, found.delta, found.threshold, (found.column & 1) != 0};
    }
    const NarrowReader reader(layout_);
    const uint32_t word = reader.word(at);
    return {word & 0xfff8u, word >> 16, reader.threshold(at), NarrowReader::categorical(word)};
  }

  // Append a step for a feature to the path, and update the weights.
  static void extend(Path& path, double unknown, double known, int32_t feature) {
    const int32_t n = path.length++;
    path.steps[n] = {feature, unknown, known, n == 0 ? 1.0 : 0.0};
    for (int32_t i = n - 1; i >= 0; --i) {
      path.steps[i + 1].weight += known * path.steps[i].weight * (i + 1) / (n + 1);
      path.steps[i].weight *= unknown * (n - i) / (n + 1);
    }
  }

  // Call each(index, weight) with the weights that the path has without step k, from the last index to the
  // first. The path does not change.
  template <class Each>
  static void without(const Path& path, int32_t k, Each each) {
    const int32_t n = path.length - 1;
    const double known = path.steps[k].known, unknown = path.steps[k].unknown;
    double next = path.steps[n].weight;
    for (int32_t i = n - 1; i >= 0; --i) {
      if (known != 0) {
        const double weight = next * (n + 1) / ((i + 1) * known);
        next = path.steps[i].weight - weight * unknown * (n - i) / (n + 1);
        each(i, weight);
      } else {
        each(i, unknown != 0 ? path.steps[i].weight * (n + 1) / (unknown * (n - i)) : 0.0);
      }
    }
  }

  // Remove step k from the path: a second node compares its feature.
  static void remove(Path& path, int32_t k) {
    double weights[kDeepestShap + 2];
    without(path, k, [&](int32_t i, double weight) { weights[i] = weight; });
    --path.length;
    for (int32_t i = k; i < path.length; ++i) path.steps[i] = path.steps[i + 1];
    for (int32_t i = 0; i < path.length; ++i) path.steps[i].weight = weights[i];
  }

  void descend(uint32_t at, Path path, double unknown, double known, int32_t feature) {
    extend(path, unknown, known, feature);
    const Node here = node(at);
    if (here.delta == 0) {
      for (int32_t k = 1; k < path.length; ++k) {
        double sum = 0;
        without(path, k, [&](int32_t, double weight) { sum += weight; });
        give(path.steps[k].feature, here.threshold, sum * (path.steps[k].known - path.steps[k].unknown));
      }
      double share = 1;
      for (int32_t k = 1; k < path.length; ++k) share *= path.steps[k].unknown;
      give(layout_.features(), here.threshold, share);
      return;
    }
    const float value = block_[here.column];
    const bool right = here.categorical
                           ? category_goes_right(layout_.sets.data() + bits_of(here.threshold), value)
                           : value >= here.threshold;
    const uint32_t children = at + here.delta;
    const int32_t asked = static_cast<int32_t>(layout_.columns[here.column / kLanes].feature);
    double unknown_before = 1, known_before = 1;
    for (int32_t k = 1; k < path.length; ++k) {
      if (path.steps[k].feature != asked) continue;
      unknown_before = path.steps[k].unknown;
      known_before = path.steps[k].known;
      remove(path, k);
      break;
    }
    for (uint32_t side = 0; side < 2; ++side) {
      const double share = layout_.cover[at] > 0 ? layout_.cover[children + side] / layout_.cover[at] : 0.5;
      const double goes = (side == 1) == right ? known_before : 0;
      descend(children + side, path, unknown_before * share, goes, asked);
    }
  }

  void give(int32_t feature, float leaf, double factor) {
    const int32_t stride = layout_.features() + 1;
    if (tree_->class_id >= 0) {
      const int32_t c = tree_->class_id;
      phi_[c * stride + feature] += factor * leaf * answer_.scale[c];
      return;
    }
    const float* vector = layout_.vectors.data() + bits_of(leaf);
    for (int32_t c = 0; c < layout_.classes(); ++c) {
      phi_[c * stride + feature] += factor * vector[c] * answer_.scale[c];
    }
  }

  const Layout& layout_;
  const Answer& answer_;
  const Tree* tree_ = nullptr;
  double* phi_ = nullptr;
  std::vector<float> block_;
};

// Write the Shapley values of `count` rows to out[rows][classes][features + 1]; the last value of a class is
// the expected margin, with answer.base.
inline void shap(const Layout& layout, const Answer& answer, const float* rows, size_t count, float* out) {
  const size_t features = static_cast<size_t>(layout.features()), width = layout.classes() * (features + 1);
  std::vector<double> phi(width);
  Shap of_row(layout, answer);
  for (size_t row = 0; row < count; ++row) {
    std::fill(phi.begin(), phi.end(), 0.0);
    for (int32_t c = 0; c < layout.classes(); ++c) phi[c * (features + 1) + features] = answer.base[c];
    of_row(rows + row * features, phi.data());
    for (size_t i = 0; i < width; ++i) out[row * width + i] = static_cast<float>(phi[i]);
  }
}

}  // namespace forest
