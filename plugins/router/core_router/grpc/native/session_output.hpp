// Session: what its owner has it send.
#pragma once

#include "session_callbacks.hpp"

namespace core_router {

inline bool Session::receive(const char* data, size_t count) {
  if (dead_) return false;
  if (nghttp2_session_mem_recv(session_, reinterpret_cast<const uint8_t*>(data), count) < 0) dead_ = true;
  return !dead_;
}

inline bool Session::send(Wire& wire, size_t most) {
  wire_ = &wire;
  most_ = most;
  full_ = false;
  while (wire.size() < most) {
    const uint8_t* data;
    const ssize_t count = nghttp2_session_mem_send(session_, &data);
    if (count < 0) dead_ = true;
    if (count <= 0) return full_;
    wire.add(reinterpret_cast<const char*>(data), static_cast<size_t>(count));
  }
  return true;
}

inline bool Session::over() const {
  return dead_ || (!nghttp2_session_want_read(session_) && !nghttp2_session_want_write(session_));
}

inline void Session::abandon() {
  dead_ = true;
  for (auto& each : streams_) {
    Stream* stream = each.second;
    if (stream->is_closed) continue;
    stream->is_closed = true;
    stream->error = NGHTTP2_INTERNAL_ERROR;
    note(stream);
  }
}

inline void Session::say_goodbye() {
  if (dead_) return;
  // The first one says that the end is near, so that a request on its way is not refused.
  if (!going_) {
    nghttp2_submit_shutdown_notice(session_);
    going_ = true;
    return;
  }
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_),
                        NGHTTP2_NO_ERROR, nullptr, 0);
}

inline Stream* Session::request(std::string_view block, std::string_view timeout) {
  if (!takes_requests()) return nullptr;
  static const std::string fixed = [] {
    std::string made;
    append_field(made, ":method", "POST");
    append_field(made, ":scheme", "http");
    return made;
  }();
  fields_.clear();
  for (FieldReader each(fixed); each.next();) fields_.push_back(Callbacks::field(each));
  // Fields with a colon come first, in heads that this class has received.
  for (FieldReader each(block); each.next();) {
    if (!timeout.empty() && each.name == "grpc-timeout") each.value = timeout;
    fields_.push_back(Callbacks::field(each));
  }
  Stream* stream = new Stream(unsent_);
  nghttp2_data_provider body{};
  body.source.ptr = stream;
  body.read_callback = Callbacks::read;
  const int32_t id =
      nghttp2_submit_request(session_, nullptr, fields_.data(), fields_.size(), &body, nullptr);
  if (id < 0) {
    going_ = true;  // no number is left for another stream
    delete stream;
    return nullptr;
  }
  stream->id = id;
  streams_.emplace(id, stream);
  return stream;
}

inline void Session::respond(int32_t id, std::string_view block, bool is_last) {
  Stream* stream = find(id);
  if (stream == nullptr || stream->responded) return;
  stream->responded = true;
  stream->finished = is_last;
  fields_.clear();
  for (FieldReader each(block); each.next();) fields_.push_back(Callbacks::field(each));
  nghttp2_data_provider body{};
  body.source.ptr = stream;
  body.read_callback = Callbacks::read;
  nghttp2_submit_response(session_, id, fields_.data(), fields_.size(), is_last ? nullptr : &body);
}

inline bool Session::write(int32_t id, PyObject* data) {
  Stream* stream = find(id);
  if (stream == nullptr || stream->finished) return true;
  stream->outgoing.add(data);
  if (stream->deferred) {
    stream->deferred = false;
    nghttp2_session_resume_data(session_, id);
  }
  stream->wants_room = stream->outgoing.size() >= ROOM_BELOW;
  return !stream->wants_room;
}

inline void Session::finish(int32_t id, std::string_view trailers) {
  Stream* stream = find(id);
  if (stream == nullptr || stream->finished) return;
  stream->finished = true;
  stream->last.assign(trailers);
  if (stream->deferred) {
    stream->deferred = false;
    nghttp2_session_resume_data(session_, id);
  }
}

inline void Session::open_window(int32_t id) {
  Stream* stream = find(id);
  if (stream == nullptr || stream->withheld == 0 || stream->is_closed) return;
  nghttp2_session_consume_stream(session_, id, stream->withheld);
  stream->withheld = 0;
}

inline void Session::reset(int32_t id, uint32_t error) {
  Stream* stream = find(id);
  if (stream == nullptr || stream->is_closed) return;
  stream->finished = true;
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, error);
}

}  // namespace core_router
