// Session: the callbacks of nghttp2, and the bytes of the connection.
#pragma once

#include "session.hpp"

// Not in every release; those that have it count resets themselves, and less patiently than `resets_`.
extern "C" __attribute__((weak)) void nghttp2_option_set_stream_reset_rate_limit(
    nghttp2_option* option, uint64_t burst, uint64_t rate);

namespace core_grpc {

// Return a header with a literal name and value, which nghttp2 does not copy.
inline nghttp2_nv literal(const char* name, const char* value) {
  auto bytes = [](const char* text) {
    return reinterpret_cast<uint8_t*>(const_cast<char*>(text));
  };
  return {bytes(name), bytes(value), std::strlen(name), std::strlen(value),
          NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

// Return a header with a literal name, and a value that nghttp2 copies.
inline nghttp2_nv copied(const char* name, const std::string& value) {
  nghttp2_nv pair = literal(name, "");
  pair.value = reinterpret_cast<uint8_t*>(const_cast<char*>(value.data()));
  pair.valuelen = value.size();
  pair.flags = NGHTTP2_NV_FLAG_NO_COPY_NAME;
  return pair;
}

constexpr int MOST_CONTINUATIONS = 8;      // of one block of headers
constexpr size_t LARGEST_FRAME = 1 << 20;  // each way
constexpr int FIRST_UNKNOWN_FRAME = 0x0a;  // RFC 9113 has types to 9; the rest are extensions
constexpr double CHATTER = 10'000, CHATTER_PER_S = 1'000, CHATTER_FOR_WORK = 8;
constexpr double RESETS = 5'000, RESETS_PER_S = 100;

struct Callbacks {
  static Session* self(void* user) { return static_cast<Session*>(user); }

  static bool is_request(const nghttp2_frame* frame) {
    return frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST;
  }

  // Called before a frame is read: charge a frame that makes no progress to the budget `chatter_`.
  static int begin_frame(nghttp2_session*, const nghttp2_frame_hd* frame, void* user) {
    Session* s = self(user);
    if (frame->type == NGHTTP2_CONTINUATION) {
      if (++s->continuations_ > MOST_CONTINUATIONS) return s->say_goodbye(
            NGHTTP2_ENHANCE_YOUR_CALM, "too many CONTINUATION frames"), NGHTTP2_ERR_CALLBACK_FAILURE;
    } else {
      s->continuations_ = 0;
      if (frame->type == NGHTTP2_DATA ? frame->length == 0 && !(frame->flags & NGHTTP2_FLAG_END_STREAM)
                                      : frame->type != NGHTTP2_HEADERS) {
        s->spend(s->chatter_, "too many frames that carry nothing");
      }
    }
    return s->dead_ ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
  }

  // Skip the content of frames of unknown types; `begin_frame` charges them.
  static int unpack_extension(nghttp2_session*, void**, const nghttp2_frame_hd*, void*) {
    return NGHTTP2_ERR_CANCEL;
  }

  static int begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    if (is_request(frame)) self(user)->opened(frame->hd.stream_id);
    return 0;
  }

  static int header(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                    size_t name_size, const uint8_t* value, size_t value_size, uint8_t, void* user) {
    Session* s = self(user);
    Stream* stream = s->find(frame->hd.stream_id);
    if (stream == nullptr) return 0;
    stream->head.bytes += name_size + value_size + 32;
    if (stream->head.bytes > MOST_HEADER_BYTES) {
      // A little too much gets an answer; a table entry repeated thousands of times only costs.
      return stream->head.bytes > 4 * MOST_HEADER_BYTES ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE : 0;
    }
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;  // trailers of the client say nothing
    stream->head.add({reinterpret_cast<const char*>(name), name_size},
                     {reinterpret_cast<const char*>(value), value_size}, s->methods_);
    return 0;
  }

  static int data(nghttp2_session* session, uint8_t, int32_t id, const uint8_t* bytes, size_t count,
                  void* user) {
    Session* s = self(user);
    // A stream with unconsumed messages must not close the window of the others.
    nghttp2_session_consume_connection(session, count);
    if (Stream* stream = s->find(id)) {
      s->data(stream, reinterpret_cast<const char*>(bytes), count);
    }
    return 0;
  }

  static int frame_received(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    Session* s = self(user);
    switch (frame->hd.type) {
      case NGHTTP2_HEADERS:
      case NGHTTP2_DATA:
        if (Stream* stream = s->find(frame->hd.stream_id)) {
          if (is_request(frame)) s->head_complete(stream);
          if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) s->input_ended(stream);
        }
        break;
      case NGHTTP2_SETTINGS:
        s->lifetime_.on_settled();
        break;
      case NGHTTP2_RST_STREAM:
        s->spend(s->resets_, "too many streams are reset");
        break;
      case NGHTTP2_PING:
        if (frame->hd.flags & NGHTTP2_FLAG_ACK) {
          if (frame->ping.opaque_data[0] == 'e' && s->lifetime_.on_announcement_seen()) {
            s->refuse_calls();
          }
        } else if (!s->lifetime_.on_client_ping(s->now_ns_, s->open_ != 0)) {
          s->say_goodbye(NGHTTP2_ENHANCE_YOUR_CALM, "too_many_pings");
        }
        break;
    }
    return s->dead_ ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
  }

  static int stream_closed(nghttp2_session*, int32_t id, uint32_t, void* user) {
    Session* s = self(user);
    if (Stream* stream = s->find(id)) s->closed(stream);
    return 0;
  }

  static int frame_sent(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    Session* s = self(user);
    switch (frame->hd.type) {
      case NGHTTP2_HEADERS:
        // The client may still send, but the server does not read it any more.
        if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM &&
            !nghttp2_session_get_stream_remote_close(session, frame->hd.stream_id)) {
          nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
        }
        [[fallthrough]];
      case NGHTTP2_DATA:
        s->lifetime_.on_data_sent();
        s->chatter_.earn(CHATTER_FOR_WORK);
        break;
      case NGHTTP2_RST_STREAM:
        // A client can also make the server reset its streams, by breaking the protocol on each.
        if (frame->rst_stream.error_code != NGHTTP2_NO_ERROR) {
          s->spend(s->resets_, "too many streams are reset");
        }
        break;
    }
    return 0;
  }

  static ssize_t frame_size(nghttp2_session*, uint8_t, int32_t, int32_t connection_window,
                            int32_t stream_window, uint32_t largest, void*) {
    int64_t size = std::min<int64_t>({connection_window, stream_window, largest, LARGEST_FRAME});
    return static_cast<ssize_t>(std::max<int64_t>(size, 1));
  }

  // Return how many bytes of a stream the next DATA frame has; `send_data` writes the bytes.
  static ssize_t read(nghttp2_session*, int32_t, uint8_t*, size_t most, uint32_t* flags,
                      nghttp2_data_source* source, void* user) {
    Stream* stream = static_cast<Stream*>(source->ptr);
    size_t count = std::min(most, stream->outgoing.size());
    bool last = stream->finished && count == stream->outgoing.size();
    if (count == 0 && !last) {
      stream->deferred = true;
      return NGHTTP2_ERR_DEFERRED;
    }
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (last) {
      *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
      self(user)->submit_trailers(stream);
    }
    return static_cast<ssize_t>(count);
  }

  static int send_data(nghttp2_session*, nghttp2_frame*, const uint8_t* header, size_t count,
                       nghttp2_data_source* source, void* user) {
    Session* s = self(user);
    if (s->wire_->size() >= s->wire_most_) {
      s->wire_full_ = true;
      return NGHTTP2_ERR_WOULDBLOCK;
    }
    Stream* stream = static_cast<Stream*>(source->ptr);
    // The call was stopped after the frame was made.
    if (count > stream->outgoing.size()) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    s->wire_->add(reinterpret_cast<const char*>(header), 9);
    stream->outgoing.move_to(*s->wire_, count, s->memory_);
    s->uncount(stream, count);
    if (stream->wants_room && stream->outgoing.size() < s->settings_.room_below) {
      stream->wants_room = false;
      s->emit(EventKind::room, stream);
    }
    return 0;
  }
};

inline Session::Session(const Settings& settings, const Methods& methods, Memory& memory,
                        Host& host, int64_t now_ns)
    : settings_(settings),
      methods_(methods),
      memory_(memory),
      host_(host),
      now_ns_(now_ns),
      lifetime_(settings.times, now_ns),
      reserve_{settings.reserve},
      chatter_(CHATTER, CHATTER_PER_S, now_ns),
      resets_(RESETS, RESETS_PER_S, now_ns) {
  nghttp2_session_callbacks* callbacks;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, Callbacks::begin_frame);
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, Callbacks::begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, Callbacks::header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Callbacks::frame_received);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::stream_closed);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, Callbacks::frame_sent);
  nghttp2_session_callbacks_set_send_data_callback(callbacks, Callbacks::send_data);
  nghttp2_session_callbacks_set_data_source_read_length_callback(callbacks, Callbacks::frame_size);
  nghttp2_session_callbacks_set_unpack_extension_callback(callbacks, Callbacks::unpack_extension);
  nghttp2_option* option;
  nghttp2_option_new(&option);
  nghttp2_option_set_no_auto_window_update(option, 1);
  nghttp2_option_set_no_closed_streams(option, 1);
  for (int type = FIRST_UNKNOWN_FRAME; type <= 0xFF; ++type) {
    nghttp2_option_set_user_recv_extension_type(option, static_cast<uint8_t>(type));
  }
  if (nghttp2_option_set_stream_reset_rate_limit != nullptr) {
    nghttp2_option_set_stream_reset_rate_limit(option, 2 * static_cast<uint64_t>(RESETS), 1'000);
  }
  nghttp2_session_server_new2(&session_, callbacks, this, option);
  nghttp2_option_del(option);
  nghttp2_session_callbacks_del(callbacks);
  nghttp2_settings_entry entries[] = {
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, settings.most_streams},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, settings.stream_window},
      {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, LARGEST_FRAME},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, MOST_HEADER_BYTES},
      // Trees of priorities cost the server and help no gRPC client.
      {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
  };
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, entries, std::size(entries));
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0,
                                        static_cast<int32_t>(settings.connection_window));
}

inline Session::~Session() {
  abandon();
  Event event;
  while (next_event(event)) {
    if (event.object != nullptr) memory_.release(event.object);
  }
  while (streams_ != nullptr) {
    Stream* each = streams_;
    streams_ = each->next;
    each->clear(memory_, reserve_);
    delete each;
  }
  for (Stream* each : spare_) delete each;
  nghttp2_session_del(session_);
}

inline bool Session::receive(const char* data, size_t count, int64_t now_ns) {
  if (dead_) return false;
  now_ns_ = now_ns;
  lifetime_.on_read(now_ns);
  ssize_t used = nghttp2_session_mem_recv(session_, reinterpret_cast<const uint8_t*>(data), count);
  if (used < 0) dead_ = true;
  return !dead_;
}

inline bool Session::tick(int64_t now_ns) {
  now_ns_ = now_ns;
  expire(now_ns);
  if (now_ns >= messages_at_ns_) check_messages(now_ns);
  while (!dead_) {
    switch (lifetime_.due(now_ns, open_ != 0)) {
      case Action::none:
        return true;
      case Action::ping:
        nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, reinterpret_cast<const uint8_t*>("keepaliv"));
        break;
      case Action::give_up:
        dead_ = true;
        break;
      case Action::announce_end:
        nghttp2_submit_shutdown_notice(session_);
        nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, reinterpret_cast<const uint8_t*>("end near"));
        break;
      case Action::end:
        refuse_calls();
        break;
      case Action::cut_off:
        cut_off(UNAVAILABLE, "the connection has reached its greatest age");
        break;
    }
  }
  return false;
}

inline int64_t Session::wake_ns() const {
  int64_t found = std::min(lifetime_.wake_ns(), messages_at_ns_);
  return deadlines_.empty() ? found : std::min(found, deadlines_.front().at_ns);
}

inline bool Session::send(Wire& wire, size_t most) {
  wire_ = &wire;
  wire_most_ = most;
  wire_full_ = false;
  while (wire.size() < most) {
    const uint8_t* data;
    ssize_t count = nghttp2_session_mem_send(session_, &data);
    if (count < 0) dead_ = true;
    if (count <= 0) return wire_full_;
    wire.add(reinterpret_cast<const char*>(data), static_cast<size_t>(count));
  }
  return true;
}

inline bool Session::over() const {
  return dead_ || (!nghttp2_session_want_read(session_) && !nghttp2_session_want_write(session_));
}

inline void Session::spend(Budget& budget, const char* why) {
  if (!budget.spend(now_ns_)) say_goodbye(NGHTTP2_ENHANCE_YOUR_CALM, why);
}

inline void Session::say_goodbye(uint32_t error, const char* why) {
  if (dead_) return;
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_),
                        error, reinterpret_cast<const uint8_t*>(why), std::strlen(why));
  dead_ = true;
}

inline void Session::refuse_calls() {
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_),
                        NGHTTP2_NO_ERROR, nullptr, 0);
}

}  // namespace core_grpc
