// Raw bytes of a client into the HTTP/2 session of frontends/grpc/native.
//
// Byte 0 selects options (see Options), byte 1 how many bytes are fed at a time, the rest is what the
// client sends. The host answers, holds, refuses and cancels by the number of the stream. At the end
// nothing may be left in memory, and every piece on the wire must be readable.
// libraries: -lnghttp2
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>

#include "frontends/grpc/native/session.hpp"

using namespace core_grpc;

namespace {

[[noreturn]] void wrong(const char* what) {
  std::fprintf(stderr, "wrong: %s\n", what);
  std::abort();
}

// Blocks from malloc with a count of references in front, so that a missing release is a leak.
struct Counted : Memory {
  struct Head {
    int64_t references, size;
  };
  int64_t live = 0;

  static Head* head(void* block) { return static_cast<Head*>(block); }
  static char* bytes(void* block) { return static_cast<char*>(block) + sizeof(Head); }

  void* make(size_t size, char** data) override {
    if (size > 64 << 20) return nullptr;
    Head* made = static_cast<Head*>(std::malloc(sizeof(Head) + size));
    *made = {1, static_cast<int64_t>(size)};
    ++live;
    *data = bytes(made);
    return made;
  }
  void* resize(void* block, size_t size, char** data) override {
    if (size > 64 << 20) {
      release(block);
      return nullptr;
    }
    Head* moved = static_cast<Head*>(std::realloc(block, sizeof(Head) + size));
    moved->size = static_cast<int64_t>(size);
    *data = bytes(moved);
    return moved;
  }
  void retain(void* owner) override { ++head(owner)->references; }
  void release(void* owner) override {
    if (--head(owner)->references == 0) {
      std::free(owner);
      --live;
    }
  }
};

struct Options {
  bool preface;  // the client's preface and its settings come before the bytes
  bool holds;    // answers come later
  bool paused;   // nothing is sent until the end
  bool hurried;  // time passes
  bool guarded;  // calls that stream are admitted or refused
  bool scarce;   // there is memory for some kilobytes only
  explicit Options(uint8_t byte)
      : preface(byte & 1), holds(byte & 2), paused(byte & 4), hurried(byte & 8), guarded(byte & 16),
        scarce(byte & 32) {}
};

class Client : Host {
 public:
  explicit Client(Options options) : options_(options) {
    methods_.add("/f.F/Unary", false, false);
    methods_.add("/f.F/Stream", true, options.guarded);
    methods_.add("/f.F/Guarded", false, true);
    settings_.message_timeout_ns = 2'000'000'000;
    settings_.most_message_bytes = 1 << 20;
    settings_.most_untaken = 64;
    settings_.room_below = 256;
    settings_.reserve = 1 << 18;
    settings_.times.keepalive_ns = 1'000'000'000;
    settings_.times.keepalive_timeout_ns = 500'000'000;
    settings_.times.least_ping_interval_ns = 1'000'000;
    settings_.times.age_ns = 5'000'000'000;
    settings_.times.age_grace_ns = 1'000'000'000;
    session_ = new Session(settings_, methods_, memory_, *this, now_);
  }

  ~Client() {
    session_->cut_off(UNAVAILABLE, "over");
    flush(true);
    session_->abandon();
    handle_events();
    if (unpaid_ < 0 || taken_ < 0) wrong("more was given back than was taken");
    for (auto& each : held_) memory_.release(each.second);
    delete session_;
    wire_.clear(memory_);
    if (memory_.live != 0) wrong("something is left in memory");
  }

  void feed(const uint8_t* data, size_t count) {
    session_->receive(reinterpret_cast<const char*>(data), count, now_);
    if (options_.hurried && session_->wake_ns() != NEVER) {
      now_ = std::max(now_, std::min(session_->wake_ns(), now_ + 300'000'000));
      session_->tick(now_);
    }
    handle_events();
    if (options_.holds && held_.size() > 3) answer_held();
    if (!options_.paused) flush(false);
  }

 private:
  bool admit(int32_t id, int32_t) override {
    if (session_->head(id) == nullptr) wrong("a call without headers is admitted");
    if (id % 4 == 3) {
      finish(id, UNAVAILABLE, "not you");
      return false;
    }
    keep(id);
    return true;
  }
  bool take(size_t size, std::string& why) override {
    if (options_.scarce && taken_ + static_cast<int64_t>(size) > 600'000) {
      why = "no memory";
      return false;
    }
    taken_ += static_cast<int64_t>(size);
    return true;
  }
  void give(size_t size) override { taken_ -= static_cast<int64_t>(size); }
  void give_unpaid(size_t size) override { unpaid_ -= static_cast<int64_t>(size); }

  void handle_events() {
    Event event;
    while (session_->next_event(event)) {
      switch (event.kind) {
        case EventKind::request:
          if (void* tag = session_->untag(event.id)) memory_.release(tag);
          if (session_->hold(event.id, 100) && session_->owe(event.id, 50)) unpaid_ += 50;
          if (event.id % 3 == 0) session_->release(event.id, 100);
          if (event.id % 3 == 1) session_->pay(event.id, 20);
          if (!session_->is_open(event.id)) {
            memory_.release(event.object);
          } else if (options_.holds) {
            keep(event.id);
            held_.emplace(event.id, event.object);
          } else {
            answer(event.id, event.object);
          }
          break;
        case EventKind::open:
          if (session_->is_open(event.id) && session_->tag(event.id) == nullptr) keep(event.id);
          break;
        case EventKind::message:
          session_->taken(event.id, static_cast<size_t>(Counted::head(event.object)->size));
          send(event.id, event.object);
          break;
        case EventKind::end:
          finish(event.id, OK, "");
          break;
        case EventKind::gone:
          memory_.release(event.object);
          break;
        case EventKind::room:
          break;
      }
    }
  }

  void keep(int32_t id) {
    char* data;
    void* tag = memory_.make(1, &data);
    if (!session_->set_tag(id, tag)) memory_.release(tag);
  }

  void answer_held() {
    for (auto& each : held_) answer(each.first, each.second);
    held_.clear();
  }

  void answer(int32_t id, void* message) {
    const RequestHead* head = session_->head(id);
    if (head != nullptr && head->accepts & (1 << GZIP)) session_->set_packing(id, GZIP);
    if (id % 7 == 3) {
      memory_.release(message);
      finish(id, INTERNAL, "no \xff% good ");
    } else {
      send(id, message);
      finish(id, OK, "");
    }
  }

  void send(int32_t id, void* message) {
    size_t size = static_cast<size_t>(Counted::head(message)->size);
    size_t copies = id % 5 == 1 ? 20 : 1;
    if (session_->message(id, size * copies, false)) {
      for (size_t i = 0; i < copies; ++i) {
        session_->part(id, Counted::bytes(message), size, message);
      }
      session_->push(id);
    }
    memory_.release(message);
  }

  void finish(int32_t id, int status, const char* text) {
    if (void* tag = session_->untag(id)) memory_.release(tag);
    session_->finish(id, status, text, std::strlen(text));
  }

  void flush(bool all) {
    for (bool more = true; more;) {
      more = session_->send(wire_, all ? 1 << 20 : 512);
      check_wire();
      wire_.clear(memory_);
      handle_events();
    }
  }

  void check_wire() {
    size_t at = 0;
    for (const External& each : wire_.externals) {
      if (each.at < at || each.at > wire_.bytes.size()) wrong("pieces are out of order");
      at = each.at;
      for (size_t i = 0; i < each.size; ++i) sum_ += static_cast<unsigned char>(each.data[i]);
    }
    for (char each : wire_.bytes) sum_ += static_cast<unsigned char>(each);
  }

  Options options_;
  Counted memory_;
  Methods methods_;
  Settings settings_;
  Session* session_;
  Wire wire_;
  std::map<int32_t, void*> held_;
  int64_t now_ = 1'000'000'000;
  int64_t taken_ = 0, unpaid_ = 0;
  volatile uint64_t sum_ = 0;
};

const char PREFACE[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  Options options(data[0]);
  size_t step = data[1] == 0 ? 65536 : data[1];
  Client host(options);
  if (options.preface) host.feed(reinterpret_cast<const uint8_t*>(PREFACE), sizeof PREFACE - 1);
  for (size_t at = 2; at < size; at += step) host.feed(data + at, std::min(step, size - at));
  return 0;
}
