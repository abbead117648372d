// Convert the sums of a row's leaves to its prediction: scale, base, link function, form.  No Python type.
//
// All numbers are double, and become float32 once, at the end. Value and threshold are compared as float32.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace forest {

// The link functions of treelite, by its names.
enum Link : int {
  kIdentity = 0,
  kSignedSquare,
  kHinge,
  kSigmoid,
  kExponential,
  kExponentialStandardRatio,
  kLogarithmOnePlusExp,
  kSoftmax,
  kMulticlassOva,
};

// How the values of a row become its prediction.
enum Form : int {
  kValues = 0,   // one value for each class
  kThreshold,    // one value: 1 above the threshold, else 0
  kArgmax,       // the first class with the largest value
  kPair,         // one value p becomes 1 - p, p
};

struct Answer {
  Link link = kIdentity;
  Form form = kValues;
  double sigmoid_alpha = 1;
  double ratio_c = 1;
  double threshold = 0.5;
  std::vector<double> scale;  // by class: 1 / number of its trees if the forest averages them, else 1
  std::vector<double> base;   // by class, added to the scaled sum

  int32_t width() const {
    if (form == kValues) return static_cast<int32_t>(base.size());
    return form == kPair ? 2 : 1;
  }
};

inline double linked(const Answer& answer, double margin) {
  switch (answer.link) {
    case kSignedSquare: return std::copysign(margin * margin, margin);
    case kHinge: return margin > 0 ? 1 : 0;
    case kSigmoid:
    case kMulticlassOva: return 1 / (1 + std::exp(-answer.sigmoid_alpha * margin));
    case kExponential: return std::exp(margin);
    case kExponentialStandardRatio: return std::exp2(-margin / answer.ratio_c);
    case kLogarithmOnePlusExp: return margin > 0 ? margin + std::log1p(std::exp(-margin)) : std::log1p(std::exp(margin));
    default: return margin;
  }
}

inline void softmax(double* values, int32_t count) {
  const double largest = *std::max_element(values, values + count);
  double sum = 0;
  for (int32_t c = 0; c < count; ++c) sum += values[c] = std::exp(values[c] - largest);
  for (int32_t c = 0; c < count; ++c) values[c] /= sum;
}

// Write the prediction of one row to `out`, answer.width() values.
//
// sums     sums[c * stride] is the sum of class c
// values   scratch memory for one value per class
inline void finish_row(const Answer& answer, const double* sums, int32_t stride, double* values, float* out) {
  const int32_t classes = static_cast<int32_t>(answer.base.size());
  for (int32_t c = 0; c < classes; ++c) values[c] = sums[c * stride] * answer.scale[c] + answer.base[c];
  if (answer.link == kSoftmax) {
    softmax(values, classes);
  } else if (answer.link != kIdentity) {
    for (int32_t c = 0; c < classes; ++c) values[c] = linked(answer, values[c]);
  }
  switch (answer.form) {
    case kValues:
      for (int32_t c = 0; c < classes; ++c) out[c] = static_cast<float>(values[c]);
      break;
    case kThreshold:
      out[0] = static_cast<float>(values[0]) > static_cast<float>(answer.threshold) ? 1.0f : 0.0f;
      break;
    case kArgmax:
      out[0] = static_cast<float>(std::max_element(values, values + classes) - values);
      break;
    case kPair:
      out[0] = static_cast<float>(1 - values[0]);
      out[1] = static_cast<float>(values[0]);
      break;
  }
}

}  // namespace forest
