// Linear assignment: pair rows with columns so that the sum of their similarities is largest.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace tracking {

// Shortest augmenting paths (D. F. Crouse, "On implementing 2D rectangular assignment algorithms", 2016).
// Among equally good pairings it finds the one of scipy.optimize.linear_sum_assignment: columns are searched
// from the last to the first, a column that is searched is replaced by the last one that is left, and of
// equally near columns a free one is taken. The buffers are kept from call to call.
class Assignment {
 public:
  // Write the column of each row to column_of_row[rows], -1 for a row without one.
  void solve(const float* similarity, size_t rows, size_t columns, int* column_of_row) {
    bool swapped = columns < rows;
    size_t few = swapped ? columns : rows, many = swapped ? rows : columns;
    costs_.resize(few * many);
    for (size_t i = 0; i < few; i++)
      for (size_t j = 0; j < many; j++)
        costs_[i * many + j] = cost(swapped ? similarity[j * columns + i] : similarity[i * many + j]);
    begin(few, many);
    for (size_t row = 0; row < few; row++) add(int(row), many);
    for (size_t row = 0; row < rows; row++) column_of_row[row] = -1;
    for (size_t i = 0; i < few; i++) {
      if (swapped)
        column_of_row[pair_of_row_[i]] = int(i);
      else
        column_of_row[i] = pair_of_row_[i];
    }
  }

 private:
  // NaN, of boxes at the end of the range of float, would leave a row without a column.
  static double cost(float value) { return std::isfinite(value) ? -double(value) : 0.0; }

  void begin(size_t few, size_t many) {
    row_price_.assign(few, 0.0);
    column_price_.assign(many, 0.0);
    pair_of_row_.assign(few, -1);
    pair_of_column_.assign(many, -1);
    came_from_.assign(many, -1);
    distance_.resize(many);
    left_.resize(many);
  }

  // Pair one more row. The rows before it may get other columns.
  void add(int row, size_t many) {
    double length = 0;
    int column = nearest_free_column(row, many, length);
    row_price_[row] += length;
    for (size_t i = 1; i < searched_rows_.size(); i++) {
      int other = searched_rows_[i];
      row_price_[other] += length - distance_[pair_of_row_[other]];
    }
    for (int each : searched_columns_) column_price_[each] -= length - distance_[each];
    for (int other = -1; other != row;) {
      other = came_from_[column];
      pair_of_column_[column] = other;
      std::swap(pair_of_row_[other], column);
    }
  }

  int nearest_free_column(int row, size_t many, double& length) {
    searched_rows_.clear();
    searched_columns_.clear();
    for (size_t i = 0; i < many; i++) left_[i] = int(many - 1 - i);
    distance_.assign(many, std::numeric_limits<double>::infinity());
    for (size_t count = many;;) {
      searched_rows_.push_back(row);
      double nearest = std::numeric_limits<double>::infinity();
      size_t place = 0;
      const double* costs = &costs_[size_t(row) * many];
      for (size_t i = 0; i < count; i++) {
        int column = left_[i];
        double found = length + costs[column] - row_price_[row] - column_price_[column];
        if (found < distance_[column]) {
          came_from_[column] = row;
          distance_[column] = found;
        }
        if (distance_[column] < nearest ||
            (distance_[column] == nearest && pair_of_column_[column] == -1)) {
          nearest = distance_[column];
          place = i;
        }
      }
      length = nearest;
      int column = left_[place];
      searched_columns_.push_back(column);
      left_[place] = left_[--count];
      if (pair_of_column_[column] == -1) return column;
      row = pair_of_column_[column];
    }
  }

  std::vector<double> costs_, row_price_, column_price_, distance_;
  std::vector<int> pair_of_row_, pair_of_column_, came_from_, left_, searched_rows_, searched_columns_;
};

}  // namespace tracking
