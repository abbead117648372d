// Session: calls, from the headers of a stream to its status.
#pragma once

#include "session_callbacks.hpp"

namespace core_grpc {

constexpr size_t SPARE_STREAMS = 256;

// Streams ------------------------------------------------------------------

inline Stream* Session::find(int32_t id) const { return Callbacks::stream_of(session_, id); }

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
  return stream;
}

inline void Session::closed(Stream* stream) {
  nghttp2_session_set_stream_user_data(session_, stream->id, nullptr);
  if (stream->announced && !stream->finished) --unfinished_;
  drop_tag(stream);
  (stream->previous != nullptr ? stream->previous->next : streams_) = stream->next;
  if (stream->next != nullptr) stream->next->previous = stream->previous;
  --open_;
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
  stream->withheld += count;
  while (count != 0 && !stream->ignored) {
    if (stream->message != nullptr) return fail(stream, INTERNAL, "a unary call has one message");
    switch (stream->incoming.feed(data, count, settings_.most_message_bytes, memory_, reserve_)) {
      case Progress::more:
        break;
      case Progress::complete:
        message_complete(stream);
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
    stream->untaken += size;
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

// Let the client send more on this stream, unless the host has not taken enough of it.
inline void Session::give_window_back(Stream* stream) {
  if (stream->withheld == 0 || stream->untaken > settings_.most_untaken) return;
  nghttp2_session_consume_stream(session_, stream->id, stream->withheld);
  stream->withheld = 0;
}

inline void Session::taken(int32_t id, size_t size) {
  Stream* stream = find(id);
  if (stream == nullptr) return;
  stream->untaken -= std::min(size, stream->untaken);
  give_window_back(stream);
}

// Answers ------------------------------------------------------------------

inline bool Session::is_open(int32_t id) const {
  const Stream* stream = find(id);
  return stream != nullptr && !stream->finished;
}

inline const RequestHead* Session::head(int32_t id) const {
  const Stream* stream = find(id);
  return stream == nullptr ? nullptr : &stream->head;
}

inline int64_t Session::deadline_ns(int32_t id) const {
  const Stream* stream = find(id);
  return stream == nullptr || stream->deadline_ns == NEVER ? 0 : stream->deadline_ns;
}

inline void* Session::tag(int32_t id) const {
  const Stream* stream = find(id);
  return stream == nullptr ? nullptr : stream->tag;
}

inline void Session::set_tag(int32_t id, void* tag) { find(id)->tag = tag; }

inline void* Session::untag(int32_t id) {
  Stream* stream = find(id);
  if (stream == nullptr) return nullptr;
  void* tag = stream->tag;
  stream->tag = nullptr;
  return tag;
}

inline void Session::set_packing(int32_t id, Encoding packing) {
  Stream* stream = find(id);
  if (stream != nullptr && !stream->responded) stream->packing = packing;
}

inline bool Session::message(int32_t id, size_t size, bool compressed) {
  Stream* stream = find(id);
  if (stream == nullptr || stream->finished) return false;
  stream->outgoing.begin_message(compressed, size);
  return true;
}

inline void Session::part(int32_t id, const char* data, size_t size, void* owner) {
  memory_.retain(owner);
  find(id)->outgoing.add(data, size, owner, memory_);
}

inline bool Session::push(int32_t id) {
  Stream* stream = find(id);
  if (stream == nullptr) return true;
  respond(stream);
  stream->wants_room = stream->outgoing.size() >= settings_.room_below;
  return !stream->wants_room;
}

// Send the headers of the response, if they are not sent, and what follows them.
inline void Session::respond(Stream* stream) {
  if (stream->responded) {
    if (stream->deferred) {
      stream->deferred = false;
      nghttp2_session_resume_data(session_, stream->id);
    }
    return;
  }
  stream->responded = true;
  static const char* const names[] = {"identity", "gzip", "deflate"};
  nghttp2_nv head[] = {
      literal(":status", "200"),
      literal("content-type", "application/grpc"),
      literal("grpc-accept-encoding", "identity, deflate, gzip"),
      literal("grpc-encoding", names[stream->packing]),
  };
  nghttp2_data_provider provider;
  provider.source.ptr = stream;
  provider.read_callback = Callbacks::read;
  size_t count = stream->packing == IDENTITY ? 3 : 4;
  nghttp2_submit_response(session_, stream->id, head, count, &provider);
  if (stream->outgoing.size() >= EXTERNAL_FROM || methods_.streams(stream->head.method)) {
    // Turn about with the other streams: nothing waits for the end of a large or endless answer.
    nghttp2_extpri turns{NGHTTP2_EXTPRI_DEFAULT_URGENCY, 1};
    nghttp2_session_change_extpri_stream_priority(session_, stream->id, &turns, 1);
  }
}

inline void Session::finish(int32_t id, int status, const char* text, size_t text_size) {
  if (Stream* stream = find(id)) end(stream, status, text, text_size);
}

inline void Session::fail(Stream* stream, int status, const char* text) {
  stream->ignored = true;
  drop_tag(stream);
  end(stream, status, text, std::strlen(text));
}

// End a call that has run for too long, whatever the client has read of it.
inline void Session::stop(Stream* stream, int status, const char* text) {
  if (!stream->finished && stream->outgoing.size() == 0) return fail(stream, status, text);
  drop_tag(stream);
  if (stream->announced && !stream->finished) --unfinished_;
  stream->ignored = stream->finished = true;
  stream->outgoing.clear(memory_);
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_CANCEL);
}

inline void Session::end(Stream* stream, int status, const char* text, size_t text_size) {
  if (stream->finished) return;
  stream->finished = true;
  stream->status = status;
  if (text_size != 0) stream->text = percent_encoded({text, text_size});
  if (stream->announced) --unfinished_;
  if (stream->responded || stream->outgoing.size() != 0) {
    respond(stream);
  } else {
    submit_trailers(stream);
  }
}

// The status: after the response, or as all that there is.
inline void Session::submit_trailers(Stream* stream) {
  nghttp2_nv pairs[] = {
      literal(":status", "200"),
      literal("content-type", "application/grpc"),
      literal("grpc-status", "0"),
      literal("grpc-message", ""),
      literal("grpc-accept-encoding", "identity, deflate, gzip"),
  };
  std::string code;
  if (stream->status != OK) {
    code = std::to_string(stream->status);
    pairs[2] = copied("grpc-status", code);
  }
  if (!stream->text.empty()) pairs[3] = copied("grpc-message", stream->text);
  if (stream->responded) {
    nghttp2_submit_trailer(session_, stream->id, pairs + 2, stream->text.empty() ? 1 : 2);
    return;
  }
  stream->responded = true;
  nghttp2_submit_response(session_, stream->id, pairs, std::size(pairs), nullptr);
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
    if (Stream* stream = find(id)) stop(stream, DEADLINE_EXCEEDED, "Deadline Exceeded");
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
