// Session: calls, from the headers of a stream to its status.
#pragma once

#include "session_callbacks.hpp"

namespace core_grpc {

constexpr size_t SPARE_STREAMS = 256;
// Memory of an open call without its message: an entry of nghttp2, a Stream, metadata, a handle.
constexpr size_t CALL_BYTES = 2048;
// Memory of a message of a stream in addition to its bytes, until the host consumes it.
constexpr size_t MESSAGE_BYTES = 128;
constexpr int64_t SLOWEST_BYTES_PER_S = 64 * 1024;  // for which a message's time grows
constexpr int64_t LOOK_INTERVAL_NS = 1'000'000'000;  // between two checks of incomplete messages
constexpr int64_t BEGINS_ANEW = -1;  // in the place of a time: with the next look
constexpr int64_t LAST_BYTES_NS = 1'000'000'000;     // to send a complete response after its deadline

// Streams ------------------------------------------------------------------

inline Stream* Session::find(int32_t id) const {
  if (last_found_ != nullptr && last_found_->id == id) return last_found_;
  auto* stream = static_cast<Stream*>(nghttp2_session_get_stream_user_data(session_, id));
  if (stream != nullptr) last_found_ = stream;
  return stream;
}

inline Stream* Session::opened(int32_t id) {
  Stream* stream;
  if (spare_.empty()) {
    stream = new Stream;
  } else {
    stream = spare_.back();
    spare_.pop_back();
  }
  stream->id = id;
  stream->previous = nullptr;
  stream->next = streams_;
  if (streams_ != nullptr) streams_->previous = stream;
  streams_ = stream;
  ++open_;
  nghttp2_session_set_stream_user_data(session_, id, stream);
  last_found_ = stream;
  return stream;
}

inline void Session::closed(Stream* stream) {
  nghttp2_session_set_stream_user_data(session_, stream->id, nullptr);
  if (last_found_ == stream) last_found_ = nullptr;
  if (stream->announced && !stream->finished) --unfinished_;
  drop_tag(stream);
  (stream->previous != nullptr ? stream->previous->next : streams_) = stream->next;
  if (stream->next != nullptr) stream->next->previous = stream->previous;
  --open_;
  if (stream->unpaid != 0) host_.give_unpaid(stream->unpaid);
  holdings_.give(stream->held, host_);
  if (open_ == 0) holdings_.rest(host_);
  stream->clear(memory_, reserve_);
  if (spare_.size() < SPARE_STREAMS) {
    spare_.push_back(stream);
  } else {
    delete stream;
  }
}

inline void Session::drop_tag(Stream* stream) {
  if (stream->tag == nullptr) return;
  void* tag = stream->tag;
  stream->tag = nullptr;
  emit(EventKind::gone, stream, tag);
}

inline void Session::emit(EventKind kind, const Stream* stream, void* object, bool compressed) {
  events_.push_back({kind, compressed, stream->id, stream->head.method, object});
}

inline bool Session::next_event(Event& event) {
  if (first_event_ == events_.size()) {
    events_.clear();
    first_event_ = 0;
    return false;
  }
  event = events_[first_event_++];
  return true;
}

// Requests -----------------------------------------------------------------

inline void Session::head_complete(Stream* stream) {
  int http, status;
  if (const char* problem = stream->head.problem(http, status)) {
    if (http != 200) {
      refuse_http(stream, http, problem);
    } else {
      fail(stream, status, problem);
    }
    return;
  }
  stream->announced = true;
  ++unfinished_;
  watch_deadline(stream);
  if (!count(stream, CALL_BYTES)) return fail(stream, RESOURCE_EXHAUSTED, why_.c_str());
  if (methods_.guarded(stream->head.method) && !host_.admit(stream->id, stream->head.method)) {
    stream->ignored = true;
    return;
  }
  if (!methods_.streams(stream->head.method)) watch_message(stream);
  if (methods_.streams(stream->head.method)) emit(EventKind::open, stream);
}

inline void Session::refuse_http(Stream* stream, int http, const char* text) {
  stream->ignored = stream->finished = true;
  stream->text = percent_encoded(text);
  nghttp2_nv head[] = {
      http == 415 ? literal(":status", "415") : literal(":status", "405"),
      literal("content-type", "application/grpc"),
      literal("grpc-status", http == 415 ? "2" : "13"),
      copied("grpc-message", stream->text),
  };
  nghttp2_submit_response(session_, stream->id, head, std::size(head), nullptr);
}

inline void Session::data(Stream* stream, const char* data, size_t count) {
  if (stream->ignored) return;  // its window does not open again: a refused call sends no more
  if (!this->count(stream, count)) return fail(stream, RESOURCE_EXHAUSTED, why_.c_str());
  stream->withheld += count;
  while (count != 0) {
    if (stream->message != nullptr) return fail(stream, INTERNAL, "a unary call has one message");
    switch (stream->incoming.feed(data, count, settings_.most_message_bytes, memory_, reserve_)) {
      case Progress::more:
        if (stream->begun_ns == 0) watch_message(stream);
        break;
      case Progress::complete:
        message_complete(stream);
        if (stream->ignored) return;
        break;
      case Progress::too_large: {
        std::string text = "Received message larger than max (" +
                           std::to_string(stream->incoming.size()) + " vs. " +
                           std::to_string(settings_.most_message_bytes) + ")";
        return fail(stream, RESOURCE_EXHAUSTED, text.c_str());
      }
      case Progress::no_memory:
        return fail(stream, RESOURCE_EXHAUSTED, "there is no memory for the message");
      case Progress::bad_flag:
        return fail(stream, INTERNAL, "the first byte of a message is neither 0 nor 1");
    }
  }
  give_window_back(stream);
}

inline void Session::message_complete(Stream* stream) {
  bool compressed = stream->incoming.compressed();
  if (compressed && stream->head.encoding == IDENTITY) {
    return fail(stream, INTERNAL, "a message is compressed and grpc-encoding names no compression");
  }
  size_t size = stream->incoming.size();
  void* message = stream->incoming.take(reserve_);
  if (methods_.streams(stream->head.method)) {
    stream->begun_ns = 0;
    stream->untaken += size + MESSAGE_BYTES;
    emit(EventKind::message, stream, message, compressed);
  } else {
    stream->message = message;
    stream->compressed = compressed;
  }
}

inline void Session::input_ended(Stream* stream) {
  if (stream->input_over) return;
  stream->input_over = true;
  if (stream->ignored || stream->finished) return;
  if (!stream->incoming.idle()) return fail(stream, INTERNAL, "the last message is not complete");
  if (methods_.streams(stream->head.method)) return emit(EventKind::end, stream);
  if (stream->message == nullptr) return fail(stream, INTERNAL, "a unary call has one message");
  void* message = stream->message;
  stream->message = nullptr;
  emit(EventKind::request, stream, message, stream->compressed);
}

// Let the client send more on this stream, unless it has more than most_untaken unconsumed bytes.
inline void Session::give_window_back(Stream* stream) {
  if (stream->withheld == 0 || stream->untaken > settings_.most_untaken) return;
  nghttp2_session_consume_stream(session_, stream->id, stream->withheld);
  stream->withheld = 0;
}

inline void Session::taken(int32_t id, size_t size) {
  Stream* stream = find(id);
  if (stream == nullptr) return;
  stream->untaken -= std::min(size + MESSAGE_BYTES, stream->untaken);
  uncount(stream, size + MESSAGE_PREFIX);
  // A message that waited for this has its time from now on.
  if (stream->withheld != 0 && stream->begun_ns != 0) stream->begun_ns = BEGINS_ANEW;
  give_window_back(stream);
}

// Memory of a connection -------------------------------------------------------

inline bool Session::count(Stream* stream, size_t size) {
  if (!holdings_.take(size, host_, why_)) return false;
  stream->held += size;
  return true;
}

inline void Session::uncount(Stream* stream, size_t size) {
  size = std::min(size, stream->held);
  stream->held -= size;
  holdings_.give(size, host_);
}

inline bool Session::hold(int32_t id, size_t size) {
  Stream* stream = find(id);
  return stream == nullptr || count(stream, size);
}

inline void Session::release(int32_t id, size_t size) {
  if (Stream* stream = find(id)) uncount(stream, size);
}

inline bool Session::owe(int32_t id, size_t size) {
  Stream* stream = find(id);
  if (stream == nullptr) return false;
  stream->unpaid += size;
  return true;
}

inline void Session::pay(int32_t id, size_t size) {
  Stream* stream = find(id);
  if (stream == nullptr) return;
  size = std::min(size, stream->unpaid);
  stream->unpaid -= size;
  host_.give_unpaid(size);
}

// Free the received message of a stream, which the host will not consume, and stop counting it.
inline void Session::drop_input(Stream* stream) {
  stream->incoming.clear(memory_, reserve_);
  if (stream->message != nullptr) memory_.release(stream->message);
  stream->message = nullptr;
  if (stream->outgoing.size() == 0 && stream->held > CALL_BYTES) uncount(stream, stream->held - CALL_BYTES);
}

// Ends that are not the method's ---------------------------------------------

inline void Session::watch_deadline(Stream* stream) {
  if (stream->head.timeout_ns == NEVER) return;
  stream->deadline_ns = later(now_ns_, stream->head.timeout_ns);
  if (deadlines_.size() > 2 * open_ + 64) {
    // Most entries are of calls that ended before their deadline.
    auto ended = [this](const Deadline& each) { return !is_open(each.id); };
    deadlines_.erase(std::remove_if(deadlines_.begin(), deadlines_.end(), ended), deadlines_.end());
    std::make_heap(deadlines_.begin(), deadlines_.end(), std::greater<Deadline>());
  }
  deadlines_.push_back({stream->deadline_ns, stream->id});
  std::push_heap(deadlines_.begin(), deadlines_.end(), std::greater<Deadline>());
}

inline void Session::expire(int64_t now_ns) {
  while (!deadlines_.empty() && deadlines_.front().at_ns <= now_ns) {
    int32_t id = deadlines_.front().id;
    std::pop_heap(deadlines_.begin(), deadlines_.end(), std::greater<Deadline>());
    deadlines_.pop_back();
    Stream* stream = find(id);
    if (stream == nullptr) continue;
    if (stream->finished && !stream->overdue) {
      // The answer is on its way, and a reset would overtake it.
      stream->overdue = true;
      deadlines_.push_back({later(now_ns, LAST_BYTES_NS), id});
      std::push_heap(deadlines_.begin(), deadlines_.end(), std::greater<Deadline>());
    } else {
      stop(stream, DEADLINE_EXCEEDED, "Deadline Exceeded");
    }
  }
}

// Whether the stream waits for the rest of a message: of any begun one, or, of a unary call, of its request.
inline bool Session::awaits_message(const Stream* stream) const {
  if (!stream->announced || stream->ignored || stream->finished || stream->begun_ns == 0) return false;
  return methods_.streams(stream->head.method) ? !stream->incoming.idle() : !stream->input_over;
}

inline void Session::watch_message(Stream* stream) {
  stream->begun_ns = now_ns_;
  const int64_t at = later(now_ns_, settings_.message_timeout_ns);
  if (at < messages_at_ns_) messages_at_ns_ = at;
}

// End calls whose message is not complete in time: the timeout, plus the received bytes at
// SLOWEST_BYTES_PER_S.
inline void Session::check_messages(int64_t now_ns) {
  messages_at_ns_ = NEVER;
  for (Stream* each = streams_; each != nullptr; each = each->next) {
    if (!awaits_message(each)) continue;
    // The client may not send before the host has taken what is there.
    if (each->untaken > settings_.most_untaken || each->begun_ns == BEGINS_ANEW) each->begun_ns = now_ns;
    const auto received = static_cast<int64_t>(each->incoming.received());
    const int64_t earned = received * (1'000'000'000 / SLOWEST_BYTES_PER_S);
    const int64_t due = later(each->begun_ns, later(earned, settings_.message_timeout_ns));
    if (now_ns < due) {
      messages_at_ns_ = std::min(messages_at_ns_, std::max(due, now_ns + LOOK_INTERVAL_NS));
      continue;
    }
    const std::string text =
        "the message is not complete after " + std::to_string((now_ns - each->begun_ns) / 1'000'000'000) +
        " seconds: " + std::to_string(received) + " of " +
        (each->incoming.size() != 0 ? std::to_string(each->incoming.size()) : "an unknown number of") +
        " bytes came; send it faster or increase --grpc-message-timeout-secs";
    fail(each, DEADLINE_EXCEEDED, text.c_str());
  }
}

inline void Session::cut_off(int status, const char* text) {
  for (Stream* each = streams_; each != nullptr; each = each->next) {
    if (!each->finished) stop(each, status, text);
  }
  refuse_calls();
  dead_ = true;
}

inline void Session::abandon() {
  dead_ = true;
  for (Stream* each = streams_; each != nullptr; each = each->next) {
    each->ignored = each->finished = true;
    drop_tag(each);
  }
  unfinished_ = 0;
}

}  // namespace core_grpc
