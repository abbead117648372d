// Boxes and how much they overlap.
#pragma once

#include <algorithm>

namespace tracking {

// Corners of a box: x1 <= x2, y1 <= y2.
template <class Number>
struct Box {
  Number x1, y1, x2, y2;

  template <class Other>
  Box<Other> as() const {
    return {Other(x1), Other(y1), Other(x2), Other(y2)};
  }
};

// Intersection over union, from 0 to 1; 0 for two boxes without area. Computed in double and rounded to
// float, like the reference: equal overlaps must be equal, since ties decide who is matched.
inline float overlap(const Box<double>& one, const Box<double>& other) {
  double width = std::max(std::min(one.x2, other.x2) - std::max(one.x1, other.x1), 0.0);
  double height = std::max(std::min(one.y2, other.y2) - std::max(one.y1, other.y1), 0.0);
  double shared = width * height;
  double area = (one.x2 - one.x1) * (one.y2 - one.y1);
  double other_area = (other.x2 - other.x1) * (other.y2 - other.y1);
  double all = area + other_area - shared;
  return all > 0 ? float(shared / all) : 0.0f;
}

}  // namespace tracking
