// Session: what nghttp2 calls.
#pragma once

#include "session.hpp"

// Newer releases of nghttp2 count resets themselves, and sooner than `spend`. Older ones lack this function.
extern "C" __attribute__((weak)) void nghttp2_option_set_stream_reset_rate_limit(nghttp2_option* option,
                                                                                 uint64_t burst, uint64_t rate);

namespace core_router {

constexpr int MOST_RESETS = 1000;    // of streams, by a client in a second
constexpr int MOST_CHATTER = 20000;  // frames without work, by a client in a second

struct Callbacks {
  static Session* self(void* user) { return static_cast<Session*>(user); }

  static bool is_head(const nghttp2_frame* frame) {
    return frame->headers.cat == NGHTTP2_HCAT_REQUEST || frame->headers.cat == NGHTTP2_HCAT_RESPONSE;
  }

  static int begin_frame(nghttp2_session*, const nghttp2_frame_hd* frame, void* user) {
    Session* s = self(user);
    if (frame->type == NGHTTP2_CONTINUATION) {
      if (++s->continuations_ > MOST_CONTINUATIONS) s->dead_ = true;
    } else {
      s->continuations_ = 0;
      const bool is_empty = frame->type == NGHTTP2_DATA && frame->length == 0 &&
                            !(frame->flags & NGHTTP2_FLAG_END_STREAM);
      if (is_empty || (frame->type != NGHTTP2_DATA && frame->type != NGHTTP2_HEADERS)) {
        s->spend(s->chatter_, MOST_CHATTER);
      }
    }
    return s->dead_ ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
  }

  static int begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) self(user)->add(frame->hd.stream_id);
    return 0;
  }

  static int header(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                    const uint8_t* value, size_t value_size, uint8_t, void* user) {
    Stream* stream = self(user)->find(frame->hd.stream_id);
    if (stream == nullptr) return 0;
    stream->head_bytes += name_size + value_size + 32;
    if (stream->head_bytes > MOST_HEAD_BYTES) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    const std::string_view text(reinterpret_cast<const char*>(name), name_size);
    if (text == ":method" || text == ":scheme") return 0;
    append_field(is_head(frame) ? stream->head : stream->trailers, text,
                 {reinterpret_cast<const char*>(value), value_size});
    return 0;
  }

  static int data(nghttp2_session* session, uint8_t, int32_t id, const uint8_t* bytes, size_t count, void* user) {
    Session* s = self(user);
    // A stream whose bytes are not taken must not close the window of the others.
    nghttp2_session_consume_connection(session, count);
    if (Stream* stream = s->find(id)) {
      stream->data.append(reinterpret_cast<const char*>(bytes), count);
      stream->withheld += count;
      s->note(stream);
    }
    return 0;
  }

  static int received(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    Session* s = self(user);
    switch (frame->hd.type) {
      case NGHTTP2_HEADERS:
      case NGHTTP2_DATA:
        if (Stream* stream = s->find(frame->hd.stream_id)) {
          if (frame->hd.type == NGHTTP2_HEADERS && is_head(frame)) stream->has_head = true;
          if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) stream->is_over = true;
          s->note(stream);
        }
        break;
      case NGHTTP2_GOAWAY:
        s->going_ = true;
        break;
      case NGHTTP2_RST_STREAM:
        s->spend(s->resets_, MOST_RESETS);
        break;
    }
    return s->dead_ ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
  }

  static int closed(nghttp2_session*, int32_t id, uint32_t error, void* user) {
    Session* s = self(user);
    Stream* stream = s->find(id);
    if (stream == nullptr) return 0;
    stream->is_closed = true;
    stream->error = error;
    stream->outgoing.clear();
    s->note(stream);
    return 0;
  }

  static int sent(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    Session* s = self(user);
    // A response has ended before its request: no more of that is wanted.
    if (s->is_server_ && frame->hd.type == NGHTTP2_HEADERS && frame->hd.flags & NGHTTP2_FLAG_END_STREAM &&
        !nghttp2_session_get_stream_remote_close(session, frame->hd.stream_id)) {
      nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
    }
    return 0;
  }

  static ssize_t frame_size(nghttp2_session*, uint8_t, int32_t, int32_t connection_window, int32_t stream_window,
                            uint32_t largest, void*) {
    const int64_t size = std::min<int64_t>({connection_window, stream_window, largest, LARGEST_FRAME});
    return static_cast<ssize_t>(std::max<int64_t>(size, 1));
  }

  // Return how many bytes of a stream the next DATA frame has; `send_data` writes the bytes.
  static ssize_t read(nghttp2_session* session, int32_t id, uint8_t*, size_t most, uint32_t* flags,
                      nghttp2_data_source* source, void* user) {
    Stream* stream = static_cast<Stream*>(source->ptr);
    const size_t count = std::min(most, stream->outgoing.size());
    const bool is_last = stream->finished && count == stream->outgoing.size();
    if (count == 0 && !is_last) {
      stream->deferred = true;
      return NGHTTP2_ERR_DEFERRED;
    }
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (is_last) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
      if (self(user)->is_server_) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        std::vector<nghttp2_nv> fields;
        for (FieldReader each(stream->last); each.next();) fields.push_back(field(each));
        nghttp2_submit_trailer(session, id, fields.data(), fields.size());
      }
    }
    return static_cast<ssize_t>(count);
  }

  static int send_data(nghttp2_session*, nghttp2_frame*, const uint8_t* header, size_t count,
                       nghttp2_data_source* source, void* user) {
    Session* s = self(user);
    if (s->wire_->size() >= s->most_) {
      s->full_ = true;
      return NGHTTP2_ERR_WOULDBLOCK;
    }
    Stream* stream = static_cast<Stream*>(source->ptr);
    if (count > stream->outgoing.size()) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    s->wire_->add(reinterpret_cast<const char*>(header), 9);
    stream->outgoing.move_to(*s->wire_, count);
    s->sent_ += count;
    if (stream->wants_room && stream->outgoing.size() < ROOM_BELOW) {
      stream->wants_room = false;
      stream->has_room = true;
      s->note(stream);
    }
    return 0;
  }

  // Return a field of a block, which nghttp2 copies.
  static nghttp2_nv field(const FieldReader& each) {
    auto bytes = [](std::string_view text) {
      return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
    };
    return {bytes(each.name), bytes(each.value), each.name.size(), each.value.size(), NGHTTP2_NV_FLAG_NONE};
  }
};

inline Session::Session(bool is_server, uint32_t most_streams) : is_server_(is_server) {
  nghttp2_session_callbacks* calls;
  nghttp2_session_callbacks_new(&calls);
  nghttp2_session_callbacks_set_on_begin_frame_callback(calls, Callbacks::begin_frame);
  nghttp2_session_callbacks_set_on_begin_headers_callback(calls, Callbacks::begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(calls, Callbacks::header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, Callbacks::data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(calls, Callbacks::received);
  nghttp2_session_callbacks_set_on_stream_close_callback(calls, Callbacks::closed);
  nghttp2_session_callbacks_set_on_frame_send_callback(calls, Callbacks::sent);
  nghttp2_session_callbacks_set_send_data_callback(calls, Callbacks::send_data);
  nghttp2_session_callbacks_set_data_source_read_length_callback(calls, Callbacks::frame_size);
  nghttp2_option* option;
  nghttp2_option_new(&option);
  nghttp2_option_set_no_auto_window_update(option, 1);
  nghttp2_option_set_no_closed_streams(option, 1);
  if (nghttp2_option_set_stream_reset_rate_limit != nullptr) {
    nghttp2_option_set_stream_reset_rate_limit(option, 2 * static_cast<uint64_t>(MOST_RESETS), MOST_RESETS);
  }
  if (is_server) {
    nghttp2_session_server_new2(&session_, calls, this, option);
  } else {
    nghttp2_session_client_new2(&session_, calls, this, option);
  }
  nghttp2_option_del(option);
  nghttp2_session_callbacks_del(calls);
  const nghttp2_settings_entry entries[] = {
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
      {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, LARGEST_FRAME},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, MOST_HEAD_BYTES},
      is_server ? nghttp2_settings_entry{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, most_streams}
                : nghttp2_settings_entry{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
  };
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, entries, std::size(entries));
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW);
}

inline Session::~Session() {
  for (auto& each : streams_) delete each.second;
  nghttp2_session_del(session_);
}

inline Stream* Session::add(int32_t id) {
  Stream* stream = new Stream(unsent_);
  stream->id = id;
  streams_.emplace(id, stream);
  return stream;
}

inline void Session::note(Stream* stream) {
  if (stream->is_listed) return;
  stream->is_listed = true;
  news_.push_back(stream);
}

inline Stream* Session::next_news() {
  if (next_ == news_.size()) {
    news_.clear();
    next_ = 0;
    return nullptr;
  }
  Stream* stream = news_[next_++];
  stream->is_listed = false;
  return stream;
}

inline void Session::taken(Stream* stream) {
  stream->has_room = stream->has_head = false;
  stream->is_told = stream->is_over;
  stream->head.clear();
  stream->data.clear();
  if (stream->is_closed && !stream->is_listed) {
    streams_.erase(stream->id);
    delete stream;
  }
}

// Count what only the other side's malice or a defect repeats. Servers are trusted.
inline void Session::spend(int& used, int most) {
  if (!is_server_ || ++used <= most) return;
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_),
                        NGHTTP2_ENHANCE_YOUR_CALM, nullptr, 0);
  dead_ = true;
}

}  // namespace core_router
