// Session: responses of calls, from the first message to the status.
#pragma once

#include "session_callbacks.hpp"

namespace core_grpc {

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

inline bool Session::set_tag(int32_t id, void* tag) {
  Stream* stream = find(id);
  if (stream == nullptr) return false;
  stream->tag = tag;
  return true;
}

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
  if (!count(stream, size + MESSAGE_PREFIX)) {
    stop(stream, RESOURCE_EXHAUSTED, why_.c_str());
    return false;
  }
  stream->outgoing.begin_message(compressed, size);
  return true;
}

inline void Session::part(int32_t id, const char* data, size_t size, void* owner) {
  Stream* stream = find(id);
  if (stream == nullptr) return;
  memory_.retain(owner);
  stream->outgoing.add(data, size, owner, memory_);
}

inline bool Session::push(int32_t id) {
  Stream* stream = find(id);
  if (stream == nullptr) return true;
  respond(stream);
  stream->wants_room = stream->outgoing.size() >= settings_.room_below;
  return !stream->wants_room;
}

// Submit the headers of the response, once, and let nghttp2 take the output of the stream.
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
    // Alternate with the other streams, so that they do not wait for the end of a large response.
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
  drop_input(stream);
  end(stream, status, text, std::strlen(text));
}

// End a call from outside its method, and drop its unsent output. The client gets the status, unless a
// message is partially sent: then the stream is reset.
inline void Session::stop(Stream* stream, int status, const char* text) {
  const bool whole = stream->outgoing.size() == 0 || !(wire_full_ || stream->outgoing.broken());
  if (!stream->finished && whole) {
    stream->outgoing.clear(memory_);
    return fail(stream, status, text);
  }
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

inline void Session::report_load(int32_t id, bool binary, const char* text, size_t size) {
  Stream* stream = find(id);
  if (stream == nullptr) return;
  stream->load.assign(text, size);
  stream->load_is_binary = binary;
}

// Submit the status: as trailers after the response, or as the whole response.
inline void Session::submit_trailers(Stream* stream) {
  std::string code = std::to_string(stream->status);
  nghttp2_nv pairs[6] = {
      literal(":status", "200"),
      literal("content-type", "application/grpc"),
      literal("grpc-accept-encoding", "identity, deflate, gzip"),
      stream->status == OK ? literal("grpc-status", "0") : copied("grpc-status", code),
  };
  size_t count = 4;
  if (!stream->text.empty()) {
    pairs[count++] = copied("grpc-message", stream->text);
  } else if (!stream->responded) {
    pairs[count++] = literal("grpc-message", "");
  }
  if (!stream->load.empty()) {
    pairs[count++] = stream->load_is_binary ? copied("endpoint-load-metrics-bin", stream->load)
                                            : copied("endpoint-load-metrics", stream->load);
  }
  if (stream->responded) {
    nghttp2_submit_trailer(session_, stream->id, pairs + 3, count - 3);
    return;
  }
  stream->responded = true;
  nghttp2_submit_response(session_, stream->id, pairs, count, nullptr);
}

}  // namespace core_grpc
