// Tracker: what the trackers have in common. A frame of detections goes in, a row for each detection comes out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "association.hpp"
#include "box.hpp"

namespace tracking {

// The parameters of a model. Those of the other trackers have no meaning for one.
struct Settings {
  int lost_frames;                  // frames without a detection after which a track ends
  int minimum_consecutive_frames;   // detections in a row after which a track gets its id
  double activation;                // score from which a detection begins a track
  float high_score;                 // score from which a detection is matched first
  float overlap;                    // least overlap of a match
  float second_overlap, unconfirmed_overlap;  // BoT-SORT: those of its second and third matching
  float direction_weight;           // OC-SORT: weight of the direction of motion beside the overlap
  int delta_t;                      // OC-SORT: frames between the detections that define the direction
  bool first_frame;                 // BoT-SORT: the tracks of the first frame get their ids at once
};

struct Detections {
  const Box<float>* boxes;
  const float* scores;
  const int32_t* classes;
  size_t count;
};

enum State : int32_t { UNTRACKED = 0, TENTATIVE = 1, TRACKED = 2, LOST = 3 };

// The answer to a frame. ids and states have an entry for each detection; the others describe lost tracks.
struct Rows {
  int64_t* ids;
  int32_t* states;
  std::vector<int64_t> lost_ids;
  std::vector<Box<float>> lost_boxes;
  std::vector<float> lost_scores;
  std::vector<int32_t> lost_classes;

  void set(int detection, int64_t id, bool belongs_to_a_track) {
    ids[detection] = id;
    states[detection] = id >= 0 ? TRACKED : belongs_to_a_track ? TENTATIVE : UNTRACKED;
  }
};

// What every track has.
struct TrackBase {
  int64_t id = -1;  // -1 until it is old enough
  int missed = 0;   // frames since its last detection
  int hits = 0;     // detections that count for minimum_consecutive_frames
  float score = 0;  // of its last detection
  int32_t label = 0;
};

// Buffers for one frame. The trackers of one thread share them.
struct Workspace {
  Association association;
  std::vector<int> high, low, pool, others;
  std::vector<Box<double>> rows, columns, low_boxes;
  std::vector<float> values;
};

class Tracker {
 public:
  explicit Tracker(const Settings& settings) : settings_(settings) {}
  virtual ~Tracker() = default;

  // Track one frame. Not thread-safe. Boxes and scores must be finite.
  virtual void update(const Detections& frame, Workspace& space, Rows& rows, bool with_lost) = 0;
  virtual size_t tracks() const = 0;

 protected:
  int64_t next_id() { return last_id_++; }

  template <class Track>
  void confirm(Track& track) {
    if (track.hits >= settings_.minimum_consecutive_frames && track.id == -1) track.id = next_id();
  }

  // Note the detection of a track, and give the detection the id of the track.
  template <class Track>
  void note(Track& track, const Detections& frame, int detection, Rows& rows) {
    track.score = frame.scores[detection];
    track.label = frame.classes[detection];
    rows.set(detection, track.id, true);
  }

  // Append the tracks that have an id and no detection in this frame.
  template <class Track>
  static void report_lost(const std::vector<Track>& tracks, Rows& rows) {
    for (const Track& track : tracks) {
      if (track.id < 0 || !track.missed) continue;
      rows.lost_ids.push_back(track.id);
      rows.lost_boxes.push_back(track.box().template as<float>());
      rows.lost_scores.push_back(track.score);
      rows.lost_classes.push_back(track.label);
    }
  }

  Settings settings_;

 private:
  int64_t last_id_ = 0;
};

// Split the detections at a score: the high ones, and those below it but above `above`.
inline void split(const Detections& frame, float at, float above, Workspace& space) {
  space.high.clear();
  space.low.clear();
  for (size_t i = 0; i < frame.count; i++) {
    if (frame.scores[i] >= at)
      space.high.push_back(int(i));
    else if (frame.scores[i] > above)
      space.low.push_back(int(i));
  }
}

inline void boxes_of(const Detections& frame, const std::vector<int>& indices,
                     std::vector<Box<double>>& out) {
  out.clear();
  for (int i : indices) out.push_back(frame.boxes[i].as<double>());
}

// Erase the elements for which `keep` is false, in order.
template <class Track, class Keep>
void keep_if(std::vector<Track>& tracks, Keep keep) {
  size_t kept = 0;
  for (size_t i = 0; i < tracks.size(); i++) {
    if (!keep(tracks[i], i)) continue;
    if (kept != i) tracks[kept] = std::move(tracks[i]);
    kept++;
  }
  tracks.resize(kept);
}

}  // namespace tracking
