// GrpcConnection: one connection of HTTP/2 by nghttp2, with calls of ModelInfer or one stream of ModelStreamInfer.
#pragma once

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "connection.hpp"
#include "grpc_message.hpp"

namespace bench {

class GrpcConnection final : public Connection {
 public:
  GrpcConnection(const Settings& settings, Owner& owner, int epoll)
      : Connection(settings, owner, epoll),
        streams_(settings.protocol == Protocol::grpc_stream) {}

  ~GrpcConnection() override { nghttp2_session_del(session_); }

 private:
  // Outcome of what was received, reported to the owner when nghttp2 has returned.
  enum class Outcome { none, right, wrong };

  void opened() override {
    nghttp2_session_callbacks* calls;
    nghttp2_session_callbacks_new(&calls);
    nghttp2_session_callbacks_set_on_header_callback(calls, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(calls, on_close);
    nghttp2_session_client_new(&session_, calls, this);
    nghttp2_session_callbacks_del(calls);
    const nghttp2_settings_entry entries[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, (1u << 31) - 1},
    };
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, entries, 2);
    nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, INT32_MAX);
    stream_ = -1;
    flush_session();
  }

  void closed() override {
    nghttp2_session_del(session_);
    session_ = nullptr;
  }

  void send(const Request& request, const Fields& fields) override {
    outcome_ = Outcome::none;
    has_answer_ = false;
    message_ = request.wire;
    message_at_ = 0;
    if (settings_.sequences.on) fill_varints(message_, request, fields);
    if (!streams_ || stream_ < 0) {
      submit();
    } else {
      nghttp2_session_resume_data(session_, stream_);
    }
    flush_session();
  }

  void submit() {
    std::vector<nghttp2_nv> head;
    const auto add = [&head](std::string_view name, std::string_view value) {
      head.push_back({reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())),
                      reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())), name.size(),
                      value.size(), NGHTTP2_NV_FLAG_NONE});
    };
    add(":method", "POST");
    add(":scheme", "http");
    add(":path", settings_.path);
    for (const auto& [name, value] : settings_.headers) add(name, value);
    status_.clear();
    status_text_.clear();
    frames_.reset();
    nghttp2_data_provider provider;
    provider.source.ptr = this;
    provider.read_callback = read_message;
    stream_ = nghttp2_submit_request(session_, nullptr, head.data(), head.size(), &provider, this);
  }

  void receive(std::string_view data) override {
    const ssize_t used = nghttp2_session_mem_recv(
        session_, reinterpret_cast<const uint8_t*>(data.data()), data.size());
    if (used < 0) return fail("the server sent no valid HTTP/2", false);
    flush_session();
    const Outcome outcome = outcome_;
    outcome_ = Outcome::none;
    const bool keeps = nghttp2_session_check_request_allowed(session_);
    if (outcome != Outcome::none && state_ == State::busy) {
      if (outcome == Outcome::right) {
        finish(keeps);
      } else {
        fail(error_, keeps);
      }
    } else if (!keeps && state_ == State::idle) {
      close();
      owner_.dropped(*this);
    }
  }

  void ended(const std::string& reason) override {
    fail("the server closed the connection before it answered" +
             (reason.empty() ? reason : ": " + reason), false);
  }

  void flush_session() {
    const uint8_t* data;
    ssize_t size;
    gathered_.clear();
    while ((size = nghttp2_session_mem_send(session_, &data)) > 0) {
      gathered_.append(reinterpret_cast<const char*>(data), size_t(size));
    }
    if (!gathered_.empty()) write(gathered_);
  }

  void read_answer(std::string_view message) {
    if (!streams_) {
      has_answer_ = true;
      return;
    }
    const StreamResponse found(message);
    if (!found.error.empty()) {
      // The stream goes on. Of a decoupled model, the final response follows, or this was it.
      error_ = "stream " + found.error;
      outcome_ = Outcome::wrong;
      return;
    }
    if (!found.empty) owner_.response(*this);
    if (outcome_ == Outcome::none && (found.final || !settings_.decoupled)) {
      outcome_ = Outcome::right;
    }
  }

  void end_stream(uint32_t error) {
    stream_ = -1;
    if (state_ != State::busy) return;
    if (!streams_ && status_ == "0" && has_answer_) {
      outcome_ = Outcome::right;
      return;
    }
    outcome_ = Outcome::wrong;
    if (!status_.empty()) {
      error_ = "grpc " + status_ + " " + status_text_;
    } else {
      error_ = "the server ended the call without a status, HTTP/2 error " + std::to_string(error);
    }
  }

  static ssize_t read_message(nghttp2_session*, int32_t, uint8_t* buffer, size_t size,
                              uint32_t* flags, nghttp2_data_source* source, void*) {
    auto* self = static_cast<GrpcConnection*>(source->ptr);
    const size_t count = std::min(size, self->message_.size() - self->message_at_);
    if (!count) return NGHTTP2_ERR_DEFERRED;
    std::memcpy(buffer, self->message_.data() + self->message_at_, count);
    self->message_at_ += count;
    if (!self->streams_ && self->message_at_ == self->message_.size()) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
    }
    return ssize_t(count);
  }

  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                       size_t name_size, const uint8_t* value, size_t size, uint8_t, void* user) {
    auto* self = static_cast<GrpcConnection*>(user);
    if (frame->hd.stream_id != self->stream_) return 0;
    const std::string_view key(reinterpret_cast<const char*>(name), name_size);
    const std::string_view text(reinterpret_cast<const char*>(value), size);
    if (key == "grpc-status") self->status_.assign(text);
    if (key == "grpc-message") self->status_text_.assign(text);
    return 0;
  }

  static int on_data(nghttp2_session*, uint8_t, int32_t stream, const uint8_t* data, size_t size,
                     void* user) {
    auto* self = static_cast<GrpcConnection*>(user);
    if (stream != self->stream_) return 0;
    self->frames_.feed(std::string_view(reinterpret_cast<const char*>(data), size), self->streams_,
                       [self](std::string_view message) { self->read_answer(message); });
    return 0;
  }

  static int on_close(nghttp2_session*, int32_t stream, uint32_t error, void* user) {
    auto* self = static_cast<GrpcConnection*>(user);
    if (stream == self->stream_) self->end_stream(error);
    return 0;
  }

  const bool streams_;
  nghttp2_session* session_ = nullptr;
  int32_t stream_ = -1;
  GrpcFrames frames_;
  Outcome outcome_ = Outcome::none;
  bool has_answer_ = false;  // of a call of ModelInfer
  std::string message_, gathered_, status_, status_text_, error_;
  size_t message_at_ = 0;
};

}  // namespace bench
