// HttpConnection: HTTP/1.1, kept alive.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "connection.hpp"
#include "events.hpp"
#include "http_response.hpp"

namespace bench {

class HttpConnection final : public Connection, private BodyReader {
 public:
  static constexpr size_t kMostKept = 400;       // bytes of the body of an error
  static constexpr size_t kMostAnswer = 1 << 20;  // bytes of an answer of OpenAI that are searched

  HttpConnection(const Settings& settings, Owner& owner, int epoll)
      : Connection(settings, owner, epoll), response_(*this) {}

 private:
  void send(const Request& request, const Fields& fields) override {
    response_.reset();
    events_.reset();
    kept_.clear();
    error_.clear();
    if (!settings_.sequences.on) return write(request.wire);
    patched_ = request.wire;
    fill_json(patched_, request, fields);
    write(patched_);
  }

  void receive(std::string_view data) override {
    if (state_ != State::busy) {
      close();
      return owner_.dropped(*this);
    }
    if (!response_.feed(data)) return fail("the server sent no valid HTTP", false);
    if (response_.done()) complete();
  }

  void ended(const std::string& reason) override {
    if (response_.end()) return complete();
    const char* when = response_.begun() ? "within its answer" : "before it answered";
    fail(std::string("the server closed the connection ") + when +
             (reason.empty() ? "" : ": " + reason), false);
  }

  void body(std::string_view piece) override {
    if (response_.status() != 200) {
      kept_.append(piece.substr(0, kMostKept - std::min(kMostKept, kept_.size())));
    } else if (settings_.answer == Answer::events || settings_.answer == Answer::chat_events) {
      events_.feed(piece, [this](std::string_view event) { read_event(event); });
    } else if (settings_.answer == Answer::chat && kept_.size() < kMostAnswer) {
      kept_.append(piece);
    }
  }

  void read_event(std::string_view event) {
    if (is_error(event)) {
      error_.assign(event.substr(0, kMostKept));
      return;
    }
    if (settings_.answer == Answer::events) return owner_.response(*this);
    if (event == "[DONE]") return;
    if (carries_text(event)) owner_.response(*this);
    if (const uint64_t tokens = completion_tokens(event)) exchange.tokens = tokens;
  }

  void complete() {
    const bool keeps = !response_.closes();
    if (response_.status() != 200) {
      fail("HTTP " + std::to_string(response_.status()) + " " + kept_, keeps);
    } else if (!error_.empty()) {
      fail("event " + error_, keeps);
    } else {
      if (settings_.answer == Answer::chat) exchange.tokens = completion_tokens(kept_);
      finish(keeps);
    }
  }

  HttpResponse response_;
  EventReader events_;
  std::string kept_, error_, patched_;
};

}  // namespace bench
