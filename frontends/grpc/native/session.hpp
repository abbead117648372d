// The server's side of one HTTP/2 connection with gRPC calls: bytes in, events and bytes out.
//
// Built on libnghttp2, which speaks HTTP/2. No socket, no clock and no Python here: the host feeds
// bytes and the time, takes events until there are none, answers calls by the id of their stream, and
// sends what `send` gives. Every function may be called with an id whose stream is gone.
//
//     receive ─► frames (nghttp2) ─► RequestHead, Assembly ─► Event ─► host
//     host ─► message, finish ─► Outgoing ─► frames (nghttp2) ─► Wire ─► transport
#pragma once

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "host.hpp"
#include "lifetime.hpp"
#include "stream.hpp"

namespace core_grpc {

struct Settings {
  Times times;
  size_t most_message_bytes = 0x7FFFFFFF;
  uint32_t most_streams = 4096;
  uint32_t stream_window = 4u << 20;      // bytes that a client may send ahead on a stream
  uint32_t connection_window = 16u << 20;
  size_t most_untaken = 1u << 20;         // of a stream's messages, before its window closes
  size_t room_below = 64u << 10;          // of unsent bytes a stream has room
  size_t reserve = size_t{256} << 20;     // see Reserve
  int64_t message_timeout_ns = NEVER;     // for a message to come, and more by its size
};

enum class EventKind : uint8_t {
  request,  // a unary call with its message in `object`, which is the host's now
  open,     // a call that streams
  message,  // of a call that streams, in `object`, which is the host's now
  end,      // of the messages of a call that streams
  gone,     // nobody waits for the call of tag `object` any more; the tag is the host's to release
  room,     // the call of a stream may send again
};

struct Event {
  EventKind kind;
  bool compressed;
  int32_t id;
  int32_t method;
  void* object;
};

class Session {
 public:
  // All of these outlive the session.
  Session(const Settings& settings, const Methods& methods, Memory& memory, Host& host,
          int64_t now_ns);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Bytes of the client. False if the connection must end once what `send` gives was sent.
  bool receive(const char* data, size_t count, int64_t now_ns);
  // Do what is due at this time; see wake_ns. False as for `receive`.
  bool tick(int64_t now_ns);
  // When `tick` must be called next; NEVER for not at all.
  int64_t wake_ns() const;
  // Put what should be sent now on the wire, some `most` bytes. True if there is more.
  bool send(Wire& wire, size_t most);
  // The next event, in order. False if there is none.
  bool next_event(Event& event);
  // Whether nothing more will be said on this connection.
  bool over() const;
  // Calls that have no status on its way to the client yet.
  size_t calls() const { return unfinished_; }

  // A call, by its stream ----------------------------------------------------
  bool is_open(int32_t id) const;  // whether an answer would reach the client
  const RequestHead* head(int32_t id) const;
  int64_t deadline_ns(int32_t id) const;  // 0 for none
  void* tag(int32_t id) const;
  // The reference passes to the stream, and back to the host in an event `gone`, or by untag.
  bool set_tag(int32_t id, void* tag);  // false, and nothing passes, if the stream is gone
  void* untag(int32_t id);
  // How messages that say they are compressed are; before the first one.
  void set_packing(int32_t id, Encoding packing);
  // Begin a message of `size` bytes, which `part`s make. False if the stream is gone.
  bool message(int32_t id, size_t size, bool compressed);
  void part(int32_t id, const char* data, size_t size, void* owner);  // takes a reference to owner
  // To be called after the parts. False if the host should wait for the event `room`.
  bool push(int32_t id);
  // End the call; `text` is UTF-8. Its tag should be back at the host before.
  void finish(int32_t id, int status, const char* text, size_t text_size);
  // The host has consumed a message of `size` bytes of a stream, and counts it itself from now on.
  void taken(int32_t id, size_t size);
  // Count `size` bytes that the host keeps for a call, until `release` or the end of the call. False,
  // and why_not() says why, if there is no room; true for a call that is gone.
  bool hold(int32_t id, size_t size);
  void release(int32_t id, size_t size);
  const std::string& why_not() const { return why_; }
  // The call's are `size` bytes that decompression made; Host::give_unpaid gets them with its end. False if
  // the call is gone: then they stay the host's.
  bool owe(int32_t id, size_t size);
  void pay(int32_t id, size_t size);

  // The connection -----------------------------------------------------------
  // Take no new calls; `over` becomes true with the last one.
  void refuse_calls();
  // End all calls with a status, now.
  void cut_off(int status, const char* text);
  // The connection is lost: an event `gone` for each call, nothing to send.
  void abandon();

 private:
  friend struct Callbacks;

  Stream* find(int32_t id) const;
  Stream* opened(int32_t id);
  void closed(Stream* stream);
  void head_complete(Stream* stream);
  bool count(Stream* stream, size_t size);
  void uncount(Stream* stream, size_t size);
  void drop_input(Stream* stream);
  bool awaits_message(const Stream* stream) const;
  void watch_message(Stream* stream);
  void check_messages(int64_t now_ns);
  void refuse_http(Stream* stream, int http, const char* text);
  void data(Stream* stream, const char* data, size_t count);
  void message_complete(Stream* stream);
  void input_ended(Stream* stream);
  void end(Stream* stream, int status, const char* text, size_t text_size);
  void fail(Stream* stream, int status, const char* text);
  void stop(Stream* stream, int status, const char* text);
  void respond(Stream* stream);
  void submit_trailers(Stream* stream);
  void give_window_back(Stream* stream);
  void watch_deadline(Stream* stream);
  void expire(int64_t now_ns);
  void say_goodbye(uint32_t error, const char* why);
  void spend(Budget& budget, const char* why);
  void emit(EventKind kind, const Stream* stream, void* object = nullptr, bool compressed = false);
  void drop_tag(Stream* stream);

  struct Deadline {
    int64_t at_ns;
    int32_t id;
    bool operator>(const Deadline& other) const { return at_ns > other.at_ns; }
  };

  Settings settings_;
  const Methods& methods_;
  Memory& memory_;
  Host& host_;
  nghttp2_session* session_ = nullptr;
  int64_t now_ns_;
  Lifetime lifetime_;
  Reserve reserve_;
  Holdings holdings_;
  std::string why_;
  Budget chatter_;  // frames that bring no call forward
  Budget resets_;   // calls that were begun for nothing
  int continuations_ = 0;
  bool dead_ = false;  // the connection ends after what is sent now
  Wire* wire_ = nullptr;
  size_t wire_most_ = 0;
  bool wire_full_ = false;
  std::vector<Event> events_;
  size_t first_event_ = 0;
  int64_t messages_at_ns_ = NEVER;   // when incomplete messages are looked at again
  std::vector<Deadline> deadlines_;  // a heap, earliest first; entries of calls that ended stay a while
  Stream* streams_ = nullptr;        // those that are open
  mutable Stream* last_found_ = nullptr;  // one of them: most look-ups are for the same as the one before
  size_t open_ = 0, unfinished_ = 0;
  std::vector<Stream*> spare_;
};

}  // namespace core_grpc

#include "session_callbacks.hpp"
#include "session_answers.hpp"
#include "session_calls.hpp"
