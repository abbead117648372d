// Association: which track gets which detection.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "assignment.hpp"
#include "box.hpp"

namespace tracking {

// Pairs of (row, column) in the order of the rows, and what has no partner, in ascending order.
struct Matches {
  std::vector<std::pair<int, int>> pairs;
  std::vector<int> rows, columns;
};

// Buffers of the trackers of one thread: a tracker itself keeps its tracks only.
class Association {
 public:
  std::vector<float> similarity;  // rows × columns

  // Fill `similarity` with the overlaps of the boxes.
  void compare(const std::vector<Box<double>>& rows, const std::vector<Box<double>>& columns) {
    similarity.resize(rows.size() * columns.size());
    float* out = similarity.data();
    for (const auto& row : rows)
      for (const auto& column : columns) *out++ = overlap(row, column);
  }

  // Pair rows with columns so that the sum of `value` is largest, and keep the pairs whose `similarity` is
  // at least `least`. The result is valid until the next call.
  const Matches& match(size_t rows, size_t columns, const float* value, float least) {
    found_.pairs.clear();
    found_.rows.clear();
    found_.columns.clear();
    column_of_row_.assign(rows, -1);
    taken_.assign(columns, 0);
    if (rows && columns) solver_.solve(value, rows, columns, column_of_row_.data());
    for (size_t row = 0; row < rows; row++) {
      int column = column_of_row_[row];
      if (column >= 0 && similarity[row * columns + column] >= least) {
        found_.pairs.emplace_back(int(row), column);
        taken_[column] = 1;
      } else {
        found_.rows.push_back(int(row));
      }
    }
    for (size_t column = 0; column < columns; column++)
      if (!taken_[column]) found_.columns.push_back(int(column));
    return found_;
  }

  const Matches& match(size_t rows, size_t columns, float least) {
    return match(rows, columns, similarity.data(), least);
  }

 private:
  Assignment solver_;
  Matches found_;
  std::vector<int> column_of_row_;
  std::vector<char> taken_;
};

}  // namespace tracking
