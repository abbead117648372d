// EventReader: the events of a stream (text/event-stream), and what those of OpenAI say.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

namespace bench {

class EventReader {
 public:
  static constexpr size_t kMostEvent = 1 << 20;  // bytes that are kept of one event

  void reset() {
    line_.clear();
    event_.clear();
  }

  // Calls use(data) for each event that `piece` completes.
  template <class Use>
  void feed(std::string_view piece, Use use) {
    while (!piece.empty()) {
      const size_t end = piece.find('\n');
      if (line_.size() < kMostEvent) line_.append(piece.substr(0, end));
      if (end == std::string_view::npos) return;
      piece.remove_prefix(end + 1);
      if (!line_.empty() && line_.back() == '\r') line_.pop_back();
      if (line_.empty()) {
        if (!event_.empty()) use(std::string_view(event_));
        event_.clear();
      } else if (line_.compare(0, 5, "data:") == 0) {
        event_.append(line_, line_.size() > 5 && line_[5] == ' ' ? 6 : 5, std::string::npos);
      }
      line_.clear();
    }
  }

 private:
  std::string line_, event_;
};

inline bool is_error(std::string_view event) {
  return event.substr(0, 8) == "{\"error\"";
}

// Whether the value of a key is a string that is not empty, anywhere in JSON text.
inline bool has_text(std::string_view json, std::string_view key) {
  for (size_t at = json.find(key); at != std::string_view::npos; at = json.find(key, at + 1)) {
    size_t value = at + key.size();
    while (value < json.size() && (json[value] == ' ' || json[value] == ':')) ++value;
    if (value + 1 < json.size() && json[value] == '"' && json[value + 1] != '"') return true;
  }
  return false;
}

// Whether an event of a chat or a completion brings something that was generated.
inline bool carries_text(std::string_view event) {
  return has_text(event, "\"content\"") || has_text(event, "\"text\"") ||
         has_text(event, "\"reasoning_content\"") || has_text(event, "\"reasoning\"") ||
         has_text(event, "\"arguments\"");
}

// The number of generated tokens in the `usage` of an answer; 0 if it is not there.
inline uint64_t completion_tokens(std::string_view json) {
  constexpr std::string_view kKey = "\"completion_tokens\"";
  const size_t at = json.rfind(kKey);
  if (at == std::string_view::npos) return 0;
  size_t value = at + kKey.size();
  while (value < json.size() && (json[value] == ' ' || json[value] == ':')) ++value;
  uint64_t found = 0;
  for (; value < json.size() && json[value] >= '0' && json[value] <= '9'; ++value) {
    found = found * 10 + uint64_t(json[value] - '0');
  }
  return found;
}

}  // namespace bench
