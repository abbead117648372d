// BoT-SORT without appearance and camera motion: ByteTrack with filters whose noise grows with the box, overlaps
// weighted by scores, and a third matching (Aharon et al., "BoT-SORT: Robust associations multi-pedestrian
// tracking", 2022).
#pragma once

#include <algorithm>

#include "axis.hpp"
#include "tracker.hpp"

namespace tracking {

// A track whose filter follows centre, width and height.
struct BotSortTrack : TrackBase {
  Axis x, y, width, height;

  BotSortTrack() = default;
  explicit BotSortTrack(const Box<double>& box) {
    double w = box.x2 - box.x1, h = box.y2 - box.y1;
    begin(x, box.x1 + w * 0.5, w);
    begin(y, box.y1 + h * 0.5, h);
    begin(width, w, w);
    begin(height, h, h);
    hits = 1;
  }

  Box<double> box() const {
    double half = width.position * 0.5, half_height = height.position * 0.5;
    return {x.position - half, y.position - half_height, x.position + half, y.position + half_height};
  }

  void predict() {
    auto [w, h] = size();
    double noise_w = squared(kPosition * w), noise_h = squared(kPosition * h);
    double speed_w = squared(kVelocity * w), speed_h = squared(kVelocity * h);
    x.predict(noise_w, speed_w);
    y.predict(noise_h, speed_h);
    width.predict(noise_w, speed_w);
    height.predict(noise_h, speed_h);
    keep_positive();
    missed++;
  }

  void update(const Box<double>& box) {
    auto [now_w, now_h] = size();
    double noise_w = squared(kMeasured * now_w), noise_h = squared(kMeasured * now_h);
    double w = box.x2 - box.x1, h = box.y2 - box.y1;
    x.update(box.x1 + w * 0.5, noise_w);
    y.update(box.y1 + h * 0.5, noise_h);
    width.update(w, noise_w);
    height.update(h, noise_h);
    keep_positive();
    missed = 0;
    hits++;
  }

 private:
  static constexpr double kPosition = 0.05, kVelocity = 0.00625, kMeasured = 0.05;
  static constexpr double kLeast = 1e-3;  // of width and height

  static double squared(double value) { return value * value; }

  static void begin(Axis& axis, double position, double size) {
    axis.position = position;
    axis.variance = squared(2 * kPosition * size);
    axis.velocity_variance = squared(10 * kVelocity * size);
  }

  std::pair<double, double> size() const {
    Box<double> now = box();
    return {std::max(now.x2 - now.x1, kLeast), std::max(now.y2 - now.y1, kLeast)};
  }

  void keep_positive() {
    width.position = std::max(width.position, kLeast);
    height.position = std::max(height.position, kLeast);
  }
};

class BotSort final : public Tracker {
 public:
  using Tracker::Tracker;

  void update(const Detections& frame, Workspace& space, Rows& rows, bool with_lost) override {
    for (size_t i = 0; i < frame.count; i++) rows.set(int(i), -1, false);
    frames_++;
    for (BotSortTrack& track : tracks_) track.predict();
    split(frame, settings_.high_score, 0.1f, space);
    boxes_of(frame, space.high, space.columns);
    boxes_of(frame, space.low, space.low_boxes);
    sort_tracks(space);

    std::vector<int> unconfirmed;
    unconfirmed.swap(space.others);
    const Matches& first =
        match(frame, space, space.high, space.columns, settings_.overlap, true, rows);
    std::vector<int> unmatched = first.columns;
    std::vector<int> left;  // a track that is lost takes no detection with a low score
    for (int row : first.rows)
      if (tracks_[space.pool[row]].missed == 1) left.push_back(space.pool[row]);
    space.pool.swap(left);
    match(frame, space, space.low, space.low_boxes, settings_.second_overlap, false, rows);

    std::vector<char> removed(tracks_.size(), 0);
    match_unconfirmed(frame, space, unconfirmed, unmatched, removed, rows);
    keep_if(tracks_, [&](const BotSortTrack&, size_t i) { return !removed[i]; });
    for (int column : unmatched) begin_track(frame, space.high[column], rows);
    keep_if(tracks_, [this](const BotSortTrack& track, size_t) { return alive(track); });
    if (with_lost) report_lost(tracks_, rows);
  }

  size_t tracks() const override { return tracks_.size(); }

 private:
  // Put confirmed and then lost tracks into space.pool, unconfirmed ones into space.others.
  void sort_tracks(Workspace& space) {
    space.pool.clear();
    space.others.clear();
    for (size_t i = 0; i < tracks_.size(); i++) {
      if (tracks_[i].missed > 1) continue;
      (confirmed(tracks_[i]) ? space.pool : space.others).push_back(int(i));
    }
    for (size_t i = 0; i < tracks_.size(); i++)
      if (tracks_[i].missed > 1) space.pool.push_back(int(i));
  }

  // Match the tracks of space.pool with detections. `weighted`: by their scores.
  const Matches& match(const Detections& frame, Workspace& space, const std::vector<int>& detections,
                       const std::vector<Box<double>>& boxes, float least, bool weighted, Rows& rows) {
    space.rows.clear();
    for (int i : space.pool) space.rows.push_back(tracks_[i].box());
    Association& association = space.association;
    association.compare(space.rows, boxes);
    if (weighted) {
      float* value = association.similarity.data();
      for (size_t row = 0; row < space.rows.size(); row++)
        for (int detection : detections) *value++ *= frame.scores[detection];
    }
    const Matches& found = association.match(space.rows.size(), boxes.size(), least);
    for (auto [row, column] : found.pairs) {
      BotSortTrack& track = tracks_[space.pool[row]];
      track.update(boxes[column]);
      confirm(track);
      note(track, frame, detections[column], rows);
    }
    return found;
  }

  // Match unconfirmed tracks with the detections `unmatched`, places in space.high. Mark those without one as
  // removed, and leave the detections without a track in `unmatched`.
  void match_unconfirmed(const Detections& frame, Workspace& space, std::vector<int>& unconfirmed,
                         std::vector<int>& unmatched, std::vector<char>& removed, Rows& rows) {
    space.pool.swap(unconfirmed);
    std::vector<int> detections;
    for (int column : unmatched) detections.push_back(space.high[column]);
    boxes_of(frame, detections, space.low_boxes);
    const Matches& found = match(frame, space, detections, space.low_boxes,
                                 settings_.unconfirmed_overlap, true, rows);
    for (int row : found.rows) removed[size_t(space.pool[row])] = 1;
    for (size_t i = 0; i < found.columns.size(); i++) unmatched[i] = unmatched[found.columns[i]];
    unmatched.resize(found.columns.size());
  }

  void begin_track(const Detections& frame, int detection, Rows& rows) {
    if (double(frame.scores[detection]) < settings_.activation) return;
    tracks_.emplace_back(frame.boxes[detection].as<double>());
    if (frames_ == 1 && settings_.first_frame) tracks_.back().id = next_id();
    note(tracks_.back(), frame, detection, rows);
  }

  bool confirmed(const BotSortTrack& track) const {
    return track.id != -1 || track.hits >= settings_.minimum_consecutive_frames;
  }

  bool alive(const BotSortTrack& track) const {
    return track.missed <= settings_.lost_frames && (confirmed(track) || !track.missed);
  }

  std::vector<BotSortTrack> tracks_;
  int64_t frames_ = 0;
};

}  // namespace tracking
