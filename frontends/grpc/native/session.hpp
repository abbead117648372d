// The server's side of one HTTP/2 connection with gRPC calls: bytes in, events and bytes out.
//
// It uses libnghttp2 for HTTP/2, but no socket, clock or Python: the host passes bytes and the time, takes
// all events, answers calls by the id of their stream, and sends the bytes from `send`. Every function
// accepts the id of a closed stream.
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
  size_t most_untaken = 1u << 20;         // unconsumed bytes of a stream, before its window closes
  size_t room_below = 64u << 10;          // unsent bytes of a stream below which the host may send
  size_t reserve = size_t{256} << 20;     // see Reserve
  int64_t message_timeout_ns = NEVER;     // to receive a message; large messages get more
};

enum class EventKind : uint8_t {
  request,  // a unary call; the host owns its message `object`
  open,     // a new streaming call
  message,  // of a streaming call; the host owns it in `object`
  end,      // of the messages of a streaming call
  gone,     // the call of tag `object` has lost its client; the host releases the tag
  room,     // a streaming call may send again
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
  // The caller owns methods, memory and host, which must outlive the session.
  Session(const Settings& settings, const Methods& methods, Memory& memory, Host& host,
          int64_t now_ns);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Process bytes of the client at this time. False if the connection must be closed after the output of
  // `send`.
  bool receive(const char* data, size_t count, int64_t now_ns);
  // Process timeouts at this time. False if the connection must be closed after the output of `send`.
  bool tick(int64_t now_ns);
  // Return the time at which `tick` must be called; NEVER if there is no timeout.
  int64_t wake_ns() const;
  // Add output to the wire, until it has about `most` bytes. True if more output may be left.
  bool send(Wire& wire, size_t most);
  // Set `event` to the next event, in order. False if there is none. The host owns its `object`.
  bool next_event(Event& event);
  // Whether the connection must be closed: it is broken, or has no further input and output.
  bool over() const;
  // Number of calls without a status.
  size_t calls() const { return unfinished_; }

  // A call, by its stream ----------------------------------------------------
  bool is_open(int32_t id) const;  // whether a response can still be sent
  const RequestHead* head(int32_t id) const;
  int64_t deadline_ns(int32_t id) const;  // 0 for none
  void* tag(int32_t id) const;
  // The stream takes over the reference to `tag`, and returns it in an event `gone` or by untag.
  bool set_tag(int32_t id, void* tag);  // false if the stream is closed: the host keeps the reference
  void* untag(int32_t id);
  // Set the compression of the response's compressed messages; no effect after the first message.
  void set_packing(int32_t id, Encoding packing);
  // Begin a message of `size` bytes; calls to `part` follow. False if the call is over, or ends now because
  // the memory account refuses the message.
  bool message(int32_t id, size_t size, bool compressed);
  void part(int32_t id, const char* data, size_t size, void* owner);  // takes a reference to owner
  // Submit a message, after its parts. False if the host should wait for the event `room` before the next
  // one.
  bool push(int32_t id);
  // Set the trailer endpoint-load-metrics of the call, or endpoint-load-metrics-bin; `text` is ASCII, of a
  // binary one in base64.
  void report_load(int32_t id, bool binary, const char* text, size_t size);
  // End the call with a gRPC status; `text` is UTF-8. The host must take back the tag before, with untag.
  void finish(int32_t id, int status, const char* text, size_t text_size);
  // Note that the host has consumed a message of `size` bytes: its bytes are no longer counted for the call,
  // and the client may send more.
  void taken(int32_t id, size_t size);
  // Count `size` bytes that the host keeps for a call, until `release` or the end of the call. False, with
  // the reason in why_not(), if the account refuses them; true for a call that is gone.
  bool hold(int32_t id, size_t size);
  void release(int32_t id, size_t size);
  const std::string& why_not() const { return why_; }
  // Count `size` bytes of decompression, which the host has taken from the memory account, for the call: its
  // end, or `pay`, returns them with Host::give_unpaid. False if the call is gone: then the host returns them
  // itself.
  bool owe(int32_t id, size_t size);
  void pay(int32_t id, size_t size);

  // The connection -----------------------------------------------------------
  // Refuse new calls with a GOAWAY; `over` becomes true after the last call.
  void refuse_calls();
  // End all calls with a status, and the connection after the output of `send`.
  void cut_off(int status, const char* text);
  // Handle the loss of the connection: an event `gone` for each call, and no output.
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
  Budget chatter_;  // frames without progress of a call
  Budget resets_;   // calls that end with a reset
  int continuations_ = 0;
  bool dead_ = false;  // the connection ends after the current output
  Wire* wire_ = nullptr;
  size_t wire_most_ = 0;
  bool wire_full_ = false;
  std::vector<Event> events_;
  size_t first_event_ = 0;
  int64_t messages_at_ns_ = NEVER;   // time of the next check of incomplete messages
  std::vector<Deadline> deadlines_;  // a heap, earliest first; may contain ended calls
  Stream* streams_ = nullptr;        // open streams
  mutable Stream* last_found_ = nullptr;  // result of the last look-up: most look-ups repeat
  size_t open_ = 0, unfinished_ = 0;
  std::vector<Stream*> spare_;
};

}  // namespace core_grpc

#include "session_callbacks.hpp"
#include "session_answers.hpp"
#include "session_calls.hpp"
