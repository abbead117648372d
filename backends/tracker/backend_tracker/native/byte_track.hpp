// ByteTrack: detections with high scores are matched first, those with low scores to the tracks that are left
// (Zhang et al., "ByteTrack: Multi-object tracking by associating every detection box", 2022).
#pragma once

#include <limits>

#include "axis.hpp"
#include "tracker.hpp"

namespace tracking {

// A track whose filter follows the four corners.
struct ByteTrackTrack : TrackBase {
  Axis axes[4];

  ByteTrackTrack() = default;
  explicit ByteTrackTrack(const Box<double>& box) {
    const double corners[4] = {box.x1, box.y1, box.x2, box.y2};
    for (int i = 0; i < 4; i++) axes[i].position = corners[i];
    hits = 1;
  }

  void predict() {
    for (Axis& axis : axes) axis.predict(0.01, 0.01);
    if (missed > 0) hits = 0;
    missed++;
  }

  void update(const Box<double>& box) {
    const double corners[4] = {box.x1, box.y1, box.x2, box.y2};
    for (int i = 0; i < 4; i++) axes[i].update(corners[i], 0.1);
    missed = 0;
    hits++;
  }

  Box<double> box() const {
    return {axes[0].position, axes[1].position, axes[2].position, axes[3].position};
  }
};

class ByteTrack final : public Tracker {
 public:
  using Tracker::Tracker;

  void update(const Detections& frame, Workspace& space, Rows& rows, bool with_lost) override {
    for (size_t i = 0; i < frame.count; i++) rows.set(int(i), -1, false);
    for (ByteTrackTrack& track : tracks_) track.predict();
    split(frame, settings_.high_score, -std::numeric_limits<float>::infinity(), space);
    boxes_of(frame, space.high, space.columns);
    boxes_of(frame, space.low, space.low_boxes);
    space.pool.clear();
    space.rows.clear();
    for (size_t i = 0; i < tracks_.size(); i++) {
      space.pool.push_back(int(i));
      space.rows.push_back(tracks_[i].box());
    }
    const Matches& first = match(frame, space, space.high, space.columns, rows);
    space.others = first.columns;  // high detections without a track
    space.pool.clear();
    for (int row : first.rows) space.pool.push_back(row);
    for (size_t i = 0; i < first.rows.size(); i++) space.rows[i] = space.rows[first.rows[i]];
    space.rows.resize(first.rows.size());
    match(frame, space, space.low, space.low_boxes, rows);
    begin_tracks(frame, space, rows);
    keep_if(tracks_, [this](const ByteTrackTrack& track, size_t) { return alive(track); });
    if (with_lost) report_lost(tracks_, rows);
  }

  size_t tracks() const override { return tracks_.size(); }

 private:
  // Match the tracks of space.pool, whose boxes are space.rows, with detections.
  const Matches& match(const Detections& frame, Workspace& space, const std::vector<int>& detections,
                       const std::vector<Box<double>>& boxes, Rows& rows) {
    space.association.compare(space.rows, boxes);
    const Matches& found =
        space.association.match(space.rows.size(), boxes.size(), settings_.overlap);
    for (auto [row, column] : found.pairs) {
      ByteTrackTrack& track = tracks_[space.pool[row]];
      track.update(boxes[column]);
      confirm(track);
      note(track, frame, detections[column], rows);
    }
    return found;
  }

  void begin_tracks(const Detections& frame, Workspace& space, Rows& rows) {
    for (int column : space.others) {
      int detection = space.high[column];
      if (double(frame.scores[detection]) < settings_.activation) continue;
      tracks_.emplace_back(space.columns[column]);
      note(tracks_.back(), frame, detection, rows);
    }
  }

  bool alive(const ByteTrackTrack& track) const {
    bool mature = track.id != -1 || track.hits >= settings_.minimum_consecutive_frames;
    return track.missed <= settings_.lost_frames && (mature || !track.missed);
  }

  std::vector<ByteTrackTrack> tracks_;
};

}  // namespace tracking
