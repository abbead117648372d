// Detections: of the boxes that a detector has predicted, those that are good enough and no duplicates.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "scores.hpp"

namespace detections {

// The options of a model.
struct Settings {
  float score_threshold;
  float iou_threshold;
  bool by_class;          // boxes of different classes are no duplicates
  bool centred;           // a box is its centre and its size, not two corners
  size_t max_candidates;
  size_t max_detections;
  double width, height;   // what boxes are multiplied by
};

// Where the original picture is in the input of the model, as in backend_image/shape.py.
struct Geometry {
  double width, height, scale_x, scale_y, left, top;
};

// What is found, the best first. boxes has four numbers for each: x1, y1, x2, y2.
struct Found {
  std::vector<float> boxes, scores;
  std::vector<int32_t> classes;
};

struct Box {
  double x1, y1, x2, y2;
  double x, y, width, height, area;  // of the rectangle that is compared
  float score;
  int32_t label;
};

// Return the length that two intervals share; 0 or less if they share nothing. The operations are those of
// OpenCV's rectangles, in their order: the results have the same bits.
inline double shared(double a, double a_length, double b, double b_length) {
  if (b < a) {
    std::swap(a, b);
    std::swap(a_length, b_length);
  }
  if (a < 0 && a + a_length < b) return 0;
  return std::min(a_length - (b - a), b_length);
}

// Return the area that two boxes share, divided by that of both together, as cv2.dnn.NMSBoxes computes it.
inline float overlap(const Box& a, const Box& b) {
  double areas = a.area + b.area;
  if (areas <= std::numeric_limits<double>::epsilon()) return 1;
  double width = shared(a.x, a.width, b.x, b.width);
  if (width <= 0) return 0;
  double height = shared(a.y, a.height, b.y, b.height);
  if (height <= 0) return 0;
  double both = width * height;
  return 1.0f - float(1.0 - both / (areas - both));
}

inline Box box_of(const Matrix& boxes, const Candidate& from, const Settings& settings) {
  Box box{};
  box.x1 = boxes.at(from.row, 0);
  box.y1 = boxes.at(from.row, 1);
  box.x2 = boxes.at(from.row, 2);
  box.y2 = boxes.at(from.row, 3);
  if (settings.centred) {
    double x = box.x1, y = box.y1, half_width = box.x2 / 2, half_height = box.y2 / 2;
    box.x1 = x - half_width;
    box.y1 = y - half_height;
    box.x2 = x + half_width;
    box.y2 = y + half_height;
  }
  box.x1 *= settings.width;
  box.y1 *= settings.height;
  box.x2 *= settings.width;
  box.y2 *= settings.height;
  box.width = box.x2 - box.x1;
  box.height = box.y2 - box.y1;
  box.score = from.score;
  box.label = from.label;
  return box;
}

inline bool has_area(const Box& box) {
  return std::isfinite(box.x1) && std::isfinite(box.y1) && std::isfinite(box.x2) && std::isfinite(box.y2) &&
         box.width > 0 && box.height > 0;
}

// Give each class a place of its own: boxes of different classes then share nothing.
inline void place(std::vector<Box>& boxes, bool by_class) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (const Box& box : boxes) {
    least = std::min({least, box.x1, box.y1});
    most = std::max({most, box.x2, box.y2});
  }
  double size = most - least + 1;
  for (Box& box : boxes) {
    double moved = by_class ? size * box.label : 0;
    box.x = box.x1 + moved;
    box.y = box.y1 + moved;
    box.area = box.width * box.height;
  }
}

// Return the boxes that overlap no better one by more than the threshold. `boxes` has the best first.
inline std::vector<const Box*> without_duplicates(const std::vector<Box>& boxes, const Settings& settings) {
  std::vector<const Box*> kept;
  for (const Box& box : boxes) {
    if (kept.size() == settings.max_detections) break;
    bool keep = true;
    for (size_t k = 0; k < kept.size() && keep; k++) keep = overlap(box, *kept[k]) <= settings.iou_threshold;
    if (keep) kept.push_back(&box);
  }
  return kept;
}

inline double clipped(double value, double most) { return std::min(std::max(value, 0.0), most); }

inline void report(const Box& box, const Geometry* to, Found& found) {
  double corners[] = {box.x1, box.y1, box.x2, box.y2};
  if (to)
    for (int i = 0; i < 4; i += 2) {
      corners[i] = clipped((corners[i] - to->left) / to->scale_x, to->width);
      corners[i + 1] = clipped((corners[i + 1] - to->top) / to->scale_y, to->height);
    }
  for (double each : corners) found.boxes.push_back(float(each));
  found.scores.push_back(box.score);
  found.classes.push_back(box.label);
}

// Append what boxes FP32[n, 4] and their scores have to `found`. geometry: null for boxes of the input.
inline void find(const Matrix& boxes, const Scores& scores, const Settings& settings,
                 const Geometry* geometry, Found& found) {
  std::vector<Box> chosen;
  for (const Candidate& each : candidates(scores, settings.score_threshold, settings.max_candidates)) {
    Box box = box_of(boxes, each, settings);
    if (has_area(box)) chosen.push_back(box);
  }
  place(chosen, settings.by_class);
  for (const Box* box : without_duplicates(chosen, settings)) report(*box, geometry, found);
}

}  // namespace detections
