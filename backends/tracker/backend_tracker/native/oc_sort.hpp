// OC-SORT: ByteTrack's first matching with the direction of motion, and corrected filters after occlusions
// (Cao et al., "Observation-centric SORT: Rethinking SORT for robust multi-object tracking", 2023).
#pragma once

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "axis.hpp"
#include "tracker.hpp"

namespace tracking {

// Centre, area and ratio of width to height. Computed in float, like the detections.
struct Shape {
  float x, y, area, ratio;

  static Shape of(const Box<float>& box) {
    float width = box.x2 - box.x1, height = box.y2 - box.y1;
    return {box.x1 + width * 0.5f, box.y1 + height * 0.5f, width * height,
            width / (height + 1e-6f)};
  }
};

// A direction of length 1, or 0 for no motion.
struct Direction {
  float y = 0, x = 0;

  static Direction between(const Box<float>& from, const Box<float>& to) {
    float x = (to.x1 + to.x2) / 2.0f - (from.x1 + from.x2) / 2.0f;
    float y = (to.y1 + to.y2) / 2.0f - (from.y1 + from.y2) / 2.0f;
    float length = std::sqrt(x * x + y * y) + 1e-6f;
    return {y / length, x / length};
  }
};

// The filter of centre, area and ratio; the ratio has no velocity.
struct ShapeFilter {
  Axis x, y, area;
  double ratio = 0, ratio_variance = 10;

  ShapeFilter() = default;
  explicit ShapeFilter(const Shape& shape) : ratio(shape.ratio) {
    x.position = shape.x;
    y.position = shape.y;
    area.position = shape.area;
    for (Axis* axis : {&x, &y, &area}) axis->variance = 10, axis->velocity_variance = 10000;
  }

  void predict() {
    if (area.position + area.velocity <= 0) area.velocity = 0;
    x.predict(1, 0.01);
    y.predict(1, 0.01);
    area.predict(1, 0.01 * 0.01);
    ratio_variance += 1;
  }

  void update(const Shape& shape) {
    x.update(shape.x, 1);
    y.update(shape.y, 1);
    area.update(shape.area, 10);
    double gain = ratio_variance * (1.0 / (ratio_variance + 10.0));
    ratio += gain * (double(shape.ratio) - ratio);
    double kept = 1.0 - gain;
    ratio_variance = kept * ratio_variance * kept + gain * 10.0 * gain;
  }

  Box<double> box() const {
    double width = std::sqrt(area.position * ratio);
    double height = width != 0 ? area.position / width : 0.0;
    double half = width * 0.5, half_height = height * 0.5;
    return {x.position - half, y.position - half_height, x.position + half, y.position + half_height};
  }
};

struct OcSortTrack : TrackBase {
  ShapeFilter filter, before_loss;  // before_loss: the filter at the first missed frame
  bool observed = true, has_direction = false;
  int age = 0;
  Direction direction;
  Box<float> last{};                               // the last detection
  std::vector<std::pair<int, Box<float>>> recent;  // detections of the last delta_t frames, by age

  OcSortTrack() = default;
  explicit OcSortTrack(const Box<float>& box) : filter(Shape::of(box)), last(box) {}

  Box<double> box() const { return filter.box(); }

  // The detection delta_t frames ago; if there was none, the next one, else the last one.
  const Box<float>* reference(int delta_t) const {
    for (const auto& [when, box] : recent)
      if (when >= age - delta_t && when < age) return &box;
    return recent.empty() ? nullptr : &recent.back().second;
  }

  void predict() {
    if (observed && missed > 0) {
      before_loss = filter;
      observed = false;
    }
    filter.predict();
    if (missed > 0) hits = 0;
    missed++;
    age++;
  }

  void update(const Box<float>& box, int delta_t) {
    if (const Box<float>* from = reference(delta_t)) {
      direction = Direction::between(*from, box);
      has_direction = true;
    }
    if (!observed) follow_line_to(box);
    filter.update(Shape::of(box));
    observed = true;
    missed = 0;
    hits++;
    last = box;
    size_t old = 0;
    while (old < recent.size() && recent[old].first < age - delta_t) old++;
    recent.erase(recent.begin(), recent.begin() + std::ptrdiff_t(old));
    recent.emplace_back(age, box);
  }

 private:
  // Go back to the filter before the loss, and give it the boxes on a line from the last detection to `box`.
  void follow_line_to(const Box<float>& box) {
    filter = before_loss;
    Shape from = Shape::of(last), to = Shape::of(box);
    auto width = [](const Shape& shape) { return std::sqrt(shape.area * shape.ratio); };
    auto height = [](const Shape& shape) {
      return shape.ratio != 0 ? std::sqrt(shape.area / shape.ratio) : 0.0f;
    };
    float gap = float(missed);
    float dx = (to.x - from.x) / gap, dy = (to.y - from.y) / gap;
    float dw = (width(to) - width(from)) / gap, dh = (height(to) - height(from)) / gap;
    for (int i = 1; i <= missed; i++) {
      float w = width(from) + float(i) * dw, h = height(from) + float(i) * dh;
      filter.update({from.x + float(i) * dx, from.y + float(i) * dy, w * h, w / h});
      if (i < missed) filter.predict();
    }
  }
};

class OcSort final : public Tracker {
 public:
  using Tracker::Tracker;

  void update(const Detections& frame, Workspace& space, Rows& rows, bool with_lost) override {
    for (size_t i = 0; i < frame.count; i++) rows.set(int(i), -1, false);
    if (tracks_.empty() && !frame.count) return;  // such a frame is not counted
    for (OcSortTrack& track : tracks_) track.predict();
    split(frame, settings_.high_score, 0, space);
    boxes_of(frame, space.high, space.columns);
    space.rows.clear();
    for (const OcSortTrack& track : tracks_) space.rows.push_back(track.box());
    Association& association = space.association;
    association.compare(space.rows, space.columns);
    const float* value = association.similarity.data();
    if (settings_.direction_weight != 0) {
      add_directions(frame, space);
      value = space.values.data();
    }
    const Matches& first =
        association.match(space.rows.size(), space.columns.size(), value, settings_.overlap);
    for (auto [row, column] : first.pairs) take(row, space.high[column], frame, rows);
    space.pool = first.rows;
    space.others.clear();
    for (int column : first.columns) space.others.push_back(space.high[column]);
    if (!space.pool.empty() && !space.others.empty()) match_last_detections(frame, space, rows);
    for (int detection : space.others) {
      tracks_.emplace_back(frame.boxes[detection]);
      note(tracks_.back(), frame, detection, rows);
    }
    keep_if(tracks_, [this](const OcSortTrack& track, size_t) {
      return track.missed <= settings_.lost_frames;
    });
    frames_++;
    if (with_lost) report_lost(tracks_, rows);
  }

  size_t tracks() const override { return tracks_.size(); }

 private:
  void take(int row, int detection, const Detections& frame, Rows& rows) {
    OcSortTrack& track = tracks_[row];
    track.update(frame.boxes[detection], settings_.delta_t);
    bool old_enough = frames_ <= settings_.minimum_consecutive_frames ||
                      track.hits >= settings_.minimum_consecutive_frames;
    if (old_enough && track.id == -1) track.id = next_id();
    note(track, frame, detection, rows);
    if (!old_enough) rows.set(detection, -1, true);  // it has an id, and was lost: it must prove itself again
  }

  // Match the tracks of space.pool by their last detections with the detections of space.others.
  void match_last_detections(const Detections& frame, Workspace& space, Rows& rows) {
    space.rows.clear();
    for (int row : space.pool) space.rows.push_back(tracks_[row].last.as<double>());
    boxes_of(frame, space.others, space.columns);
    space.association.compare(space.rows, space.columns);
    const Matches& found =
        space.association.match(space.rows.size(), space.columns.size(), settings_.overlap);
    for (auto [row, column] : found.pairs) take(space.pool[row], space.others[column], frame, rows);
    for (size_t i = 0; i < found.columns.size(); i++)
      space.others[i] = space.others[found.columns[i]];
    space.others.resize(found.columns.size());
  }

  // Write overlap + weight × agreement of the directions × score to space.values.
  void add_directions(const Detections& frame, Workspace& space) {
    size_t columns = space.high.size();
    space.values.resize(tracks_.size() * columns);
    bool all = true;  // the reference computes in double as soon as one track has no direction
    for (const OcSortTrack& track : tracks_) all = all && track.has_direction;
    for (size_t row = 0; row < tracks_.size(); row++) {
      const OcSortTrack& track = tracks_[row];
      const Box<float>* found = track.reference(settings_.delta_t);
      const Box<float>& from = found ? *found : track.last;
      for (size_t column = 0; column < columns; column++) {
        int detection = space.high[column];
        Direction to = Direction::between(from, frame.boxes[detection]);
        float agreement = 0;
        if (track.has_direction)
          agreement = all ? agree<float>(track.direction, to) : agree<double>(track.direction, to);
        size_t at = row * columns + column;
        space.values[at] = space.association.similarity[at] +
                           settings_.direction_weight * (agreement * frame.scores[detection]);
      }
    }
  }

  // From 0.5 for the same direction to -0.5 for the opposite one.
  template <class Number>
  static float agree(const Direction& one, const Direction& other) {
    Number cosine = Number(one.x) * Number(other.x) + Number(one.y) * Number(other.y);
    cosine = std::min(std::max(cosine, Number(-1)), Number(1));
    const Number pi = Number(3.14159265358979323846);
    return float((pi / 2 - std::abs(std::acos(cosine))) / pi);
  }

  std::vector<OcSortTrack> tracks_;
  int frames_ = 0;
};

}  // namespace tracking
