// Session: one HTTP/2 connection with gRPC calls, as a server of clients or as a client of servers.
//
// It uses libnghttp2, but no socket: the owner passes received bytes, takes the streams that have news, and
// sends the bytes from `send`. Messages are not looked into. Callers hold the GIL. Every function accepts the id
// of a closed stream.
//
//     receive ─► frames (nghttp2) ─► Stream: head, data, trailers ─► next_news ─► owner
//     owner ─► request or respond, write, finish ─► frames (nghttp2) ─► Wire ─► transport
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fields.hpp"
#include "wire.hpp"

namespace core_router {

constexpr size_t MOST_HEAD_BYTES = 32 * 1024;
constexpr uint32_t STREAM_WINDOW = 1u << 20;  // bytes that the other side may send ahead on a stream
constexpr int32_t CONNECTION_WINDOW = 1 << 30;
constexpr uint32_t LARGEST_FRAME = 1u << 20;
constexpr size_t ROOM_BELOW = 256 * 1024;  // unsent bytes of a stream below which more may be written
constexpr int MOST_CONTINUATIONS = 8;      // frames of one head

// One stream: news that the owner has not taken yet, and what is to be sent.
struct Stream {
  explicit Stream(size_t& unsent) : outgoing(unsent) {}

  int32_t id;
  void* tag = nullptr;    // a reference to the owner's object; the owner releases it
  std::string head;       // fields, with those that have a colon but :method and :scheme
  std::string trailers;
  std::string data;
  size_t head_bytes = 0;
  size_t withheld = 0;    // received bytes for which the window is not open again
  uint32_t error = 0;     // code of HTTP/2 with which the stream was closed
  bool has_head = false;  // whether the head is complete, and not taken yet
  bool is_over = false;   // whether the other side sends no more
  bool is_told = false;   // whether the owner knows that
  bool is_closed = false;
  bool is_listed = false;  // among those with news
  bool responded = false, deferred = false, finished = false, wants_room = false, has_room = false;
  Outgoing outgoing;
  std::string last;       // trailers to send

  // Whether all that the owner sends is on its way.
  bool is_sent() const { return finished && outgoing.size() == 0; }
};

class Session {
 public:
  // is_server      whether the other side is a client
  // most_streams   that a client may have open
  Session(bool is_server, uint32_t most_streams);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Process bytes. False if the connection must be closed after the output of `send`.
  bool receive(const char* data, size_t count);
  // Add output to the wire until it has about `most` bytes. True if more may be left.
  bool send(Wire& wire, size_t most);
  // Return the next stream with news; nullptr if there is none. Pass it to `taken` afterwards.
  Stream* next_news();
  // Note that the owner has taken head, data and trailers. A closed stream is deleted.
  void taken(Stream* stream);
  // Whether the connection must be closed: it is broken, or has no further input and output.
  bool over() const;
  // Whether a request may be sent on this connection: the server has not said goodbye.
  bool takes_requests() const { return !dead_ && !going_; }
  size_t streams() const { return streams_.size(); }
  // Bytes of all streams that the other side has not taken.
  size_t unsent() const { return unsent_; }
  // Bytes of the same kind that `send` has added to a wire.
  size_t sent() const { return sent_; }
  std::vector<Stream*> all() const {
    std::vector<Stream*> found;
    for (const auto& each : streams_) found.push_back(each.second);
    return found;
  }
  // Give each stream the news of its end: the transport is closed.
  void abandon();
  // Accept no more streams; those that are open go on.
  void say_goodbye();
  // Add to the budgets of frames without work; call it each second.
  void tick() { resets_ = chatter_ = 0; }

  Stream* find(int32_t id) const {
    auto found = streams_.find(id);
    return found == streams_.end() ? nullptr : found->second;
  }

  // Send the head of a request with the fields of a block, and `timeout` in place of its grpc-timeout unless it
  // is "". Return the stream; nullptr if the connection takes no more.
  Stream* request(std::string_view block, std::string_view timeout);
  // Send the head of a response. `is_last`: nothing follows.
  void respond(int32_t id, std::string_view block, bool is_last);
  // Send bytes. False if the owner should wait for room before the next ones.
  bool write(int32_t id, PyObject* data);
  // End what is sent: with trailers, a response; a request has none.
  void finish(int32_t id, std::string_view trailers);
  // Let the other side send more on the stream.
  void open_window(int32_t id);
  void reset(int32_t id, uint32_t error);

 private:
  friend struct Callbacks;

  Stream* add(int32_t id);
  void note(Stream* stream);
  void spend(int& used, int most);

  bool is_server_;
  bool dead_ = false, going_ = false;
  int continuations_ = 0;
  int resets_ = 0, chatter_ = 0;  // in this second
  size_t unsent_ = 0, sent_ = 0;
  nghttp2_session* session_ = nullptr;
  std::unordered_map<int32_t, Stream*> streams_;
  std::vector<Stream*> news_;
  size_t next_ = 0;
  std::vector<nghttp2_nv> fields_;  // scratch
  Wire* wire_ = nullptr;
  size_t most_ = 0;
  bool full_ = false;
};

}  // namespace core_router

#include "session_callbacks.hpp"
#include "session_output.hpp"
