// Scores: the best class of each box, and the boxes that are good enough, the best first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace detections {

// Requests need not be aligned.
inline float load(const char* place) {
  float value;
  std::memcpy(&value, place, sizeof value);
  return value;
}

// FP32[rows, columns] of any layout. The strides are in bytes.
struct Matrix {
  const char* data;
  ptrdiff_t rows, columns, row_stride, column_stride;

  const char* row(ptrdiff_t i) const { return data + i * row_stride; }
  float at(ptrdiff_t i, ptrdiff_t j) const { return load(row(i) + j * column_stride); }
};

// The scores of the classes of each box. `objects` is null, or has what they are multiplied by.
struct Scores {
  Matrix classes;
  const char* objects;
  ptrdiff_t object_stride;

  float weight(ptrdiff_t i) const { return objects ? load(objects + i * object_stride) : 1.0f; }
};

struct Candidate {
  float score;
  int32_t label;
  ptrdiff_t row;

  bool operator<(const Candidate& other) const {
    return score != other.score ? score > other.score : row < other.row;
  }
};

// The greater one; a if one of them is NaN. Processors have one instruction for exactly this.
inline float greater(float a, float b) { return b > a ? b : a; }

// Return the best score of a box. If there is a NaN among them, the result is any of its scores.
inline float best_of_row(const Scores& scores, ptrdiff_t i) {
  constexpr ptrdiff_t LANES = 8;  // independent maxima, which the compiler computes together
  const Matrix& all = scores.classes;
  const char* row = all.row(i);
  float weight = scores.weight(i);
  float best[LANES];
  std::fill(best, best + LANES, load(row) * weight);
  ptrdiff_t j = 1;
  if (all.column_stride == sizeof(float))
    for (; j + LANES <= all.columns; j += LANES)
      for (ptrdiff_t lane = 0; lane < LANES; lane++)
        best[lane] = greater(best[lane], load(row + (j + lane) * sizeof(float)) * weight);
  for (; j < all.columns; j++) best[0] = greater(best[0], load(row + j * all.column_stride) * weight);
  for (ptrdiff_t lane = 1; lane < LANES; lane++) best[0] = greater(best[0], best[lane]);
  return best[0];
}

// Write the same of each box to best[rows], for scores whose columns are contiguous.
inline void best_by_columns(const Matrix& all, float* __restrict best) {
  constexpr ptrdiff_t TOGETHER = 8;  // columns of one pass over `best`
  std::memcpy(best, all.data, size_t(all.rows) * sizeof(float));
  ptrdiff_t next = all.column_stride, j = 1;
  for (; j + TOGETHER <= all.columns; j += TOGETHER)
    for (ptrdiff_t i = 0; i < all.rows; i++) {
      const char* place = all.data + j * next + i * sizeof(float);
      float found = best[i];
      for (ptrdiff_t k = 0; k < TOGETHER; k++) found = greater(found, load(place + k * next));
      best[i] = found;
    }
  for (; j < all.columns; j++)
    for (ptrdiff_t i = 0; i < all.rows; i++)
      best[i] = greater(best[i], load(all.data + j * next + i * sizeof(float)));
}

// Give some boxes their best score and its class, the first of equal ones; NaN if one of the scores is.
inline void classify(const Scores& scores, Candidate* boxes, size_t count) {
  const Matrix& all = scores.classes;
  for (size_t k = 0; k < count; k++) boxes[k].score = all.at(boxes[k].row, 0) * scores.weight(boxes[k].row);
  for (ptrdiff_t j = 1; j < all.columns; j++)
    for (Candidate* box = boxes; box < boxes + count; box++) {
      float score = all.at(box->row, j) * scores.weight(box->row);
      if (score > box->score || score != score) {
        box->score = score;
        box->label = int32_t(j);
      }
    }
}

// Return the boxes whose best score is at least `least`: at most `most`, the best first, equal ones in
// their order. A box with a NaN is none of them.
inline std::vector<Candidate> candidates(const Scores& scores, float least, size_t most) {
  constexpr size_t BLOCK = 64;  // boxes whose scores stay in the first cache, in any layout
  const Matrix& all = scores.classes;
  if (!all.rows) return {};
  std::vector<float> best(size_t(all.rows));
  if (!scores.objects && all.row_stride == sizeof(float))
    best_by_columns(all, best.data());
  else
    for (ptrdiff_t i = 0; i < all.rows; i++) best[size_t(i)] = best_of_row(scores, i);
  std::vector<Candidate> found;
  for (ptrdiff_t i = 0; i < all.rows; i++)
    if (best[size_t(i)] >= least) found.push_back({0, 0, i});
  for (size_t begin = 0; begin < found.size(); begin += BLOCK)
    classify(scores, &found[begin], std::min(BLOCK, found.size() - begin));
  auto is_nan = [](const Candidate& box) { return box.score != box.score; };
  found.erase(std::remove_if(found.begin(), found.end(), is_nan), found.end());
  if (found.size() > most) {
    std::nth_element(found.begin(), found.begin() + ptrdiff_t(most), found.end());
    found.resize(most);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace detections
