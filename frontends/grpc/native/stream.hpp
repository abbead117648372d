// One stream of a connection, and the request in its headers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "headers.hpp"
#include "message.hpp"
#include "outgoing.hpp"

namespace core_grpc {

// The gRPC status codes that the session itself sends.
enum Status : int {
  OK = 0,
  CANCELLED = 1,
  UNKNOWN = 2,
  DEADLINE_EXCEEDED = 4,
  RESOURCE_EXHAUSTED = 8,
  UNIMPLEMENTED = 12,
  INTERNAL = 13,
  UNAVAILABLE = 14,
};

// The methods of a listener: path → index, in the order of `add`; whether each streams; whether the host must
// admit its calls (guarded).
class Methods {
 public:
  void add(const std::string& path, bool streams, bool guarded) {
    indexes_.emplace(path, static_cast<int32_t>(streams_.size()));
    streams_.push_back(streams);
    guarded_.push_back(guarded);
    last_ = indexes_.begin();
  }
  // Return the index; -1 for an unknown path.
  int32_t find(std::string_view path) const {
    if (indexes_.empty()) return -1;
    if (last_->first == path) return last_->second;  // most calls are to one method
    auto found = indexes_.find(path);
    if (found == indexes_.end()) return -1;
    last_ = found;
    return found->second;
  }
  bool streams(int32_t index) const { return streams_[static_cast<size_t>(index)]; }
  bool guarded(int32_t index) const { return guarded_[static_cast<size_t>(index)]; }

 private:
  using Indexes = std::map<std::string, int32_t, std::less<>>;
  Indexes indexes_;
  std::vector<bool> streams_, guarded_;
  mutable Indexes::const_iterator last_;
};

constexpr size_t MOST_HEADER_BYTES = 16 * 1024;  // as HTTP/2 counts them: names, values, 32 per header
constexpr size_t KEPT_BYTES = 4096;              // of metadata, in a stream that is kept for reuse

// The parsed headers of a request.
struct RequestHead {
  int32_t method = -1;
  bool post = false, grpc = false, te_trailers = false, bad_timeout = false, bad_binary = false;
  Encoding encoding = IDENTITY;
  uint8_t accepts = 1 << IDENTITY;
  bool wants_load = false;  // the client has sent endpoint-load-metrics-format
  int64_t timeout_ns = NEVER;
  size_t bytes = 0;
  // Metadata for the method: size of name, size of value (native 32-bit numbers), name, value, ….
  std::string metadata;

  void clear() {
    std::string kept = std::move(metadata);
    kept.clear();
    if (kept.capacity() > KEPT_BYTES) std::string().swap(kept);
    *this = RequestHead();
    metadata = std::move(kept);
  }

  void add(std::string_view name, std::string_view value, const Methods& methods) {
    if (name.empty()) return;
    if (name[0] == ':') {
      if (name == ":path") method = methods.find(value);
      else if (name == ":method") post = value == "POST";
    } else if (name == "content-type") {
      grpc = is_grpc_content(value);
    } else if (name == "te") {
      te_trailers = value == "trailers";
    } else if (name.substr(0, 5) == "grpc-") {
      add_grpc(name, value);
    } else if (name != "accept-encoding" && name != "host") {
      add_metadata(name, value);
    }
  }

  // Return nullptr if the headers are a valid call, else the error text. Then set `http` to the HTTP status
  // of the response, and `status` to its gRPC status if `http` is 200.
  const char* problem(int& http, int& status) const {
    http = 200;
    status = INTERNAL;
    if (!grpc) return http = 415, "content-type is not application/grpc";
    if (!post) return http = 405, "gRPC calls are made with POST";
    if (bytes > MOST_HEADER_BYTES) {
      return status = RESOURCE_EXHAUSTED, "the headers of the call are larger than 16384 bytes";
    }
    if (!te_trailers) return status = UNKNOWN, "the header 'te: trailers' is missing";
    if (method < 0) return status = UNIMPLEMENTED, "Method not found!";
    if (bad_timeout) return "grpc-timeout is not up to eight digits and a unit of H, M, S, m, u, n";
    if (bad_binary) return "metadata with a name that ends in -bin is not base64";
    if (encoding == UNKNOWN_ENCODING) {
      return status = UNIMPLEMENTED, "grpc-encoding is none of identity, gzip, deflate";
    }
    return nullptr;
  }

 private:
  void add_grpc(std::string_view name, std::string_view value) {
    if (name == "grpc-timeout") {
      timeout_ns = core_grpc::timeout_ns(value);
      bad_timeout = timeout_ns < 0;
    } else if (name == "grpc-encoding") {
      encoding = encoding_of(value);
    } else if (name == "grpc-accept-encoding") {
      accepts = accepted_encodings(value);
    } else if (name.size() > 4 && name.substr(name.size() - 4) == "-bin") {
      add_metadata(name, value);  // such as grpc-trace-bin
    }
  }

  void add_metadata(std::string_view name, std::string_view value) {
    if (name.size() <= 4 || name.substr(name.size() - 4) != "-bin") {
      append(name, value);
      return;
    }
    // Several values of one name may come joined by commas.
    while (true) {
      size_t comma = value.find(',');
      std::string decoded;
      if (!append_base64(trimmed(value.substr(0, comma)), decoded)) bad_binary = true;
      append(name, decoded);
      if (comma == std::string_view::npos) return;
      value.remove_prefix(comma + 1);
    }
  }

  void append(std::string_view name, std::string_view value) {
    if (name == "endpoint-load-metrics-format") wants_load = true;
    uint32_t sizes[2] = {static_cast<uint32_t>(name.size()), static_cast<uint32_t>(value.size())};
    metadata.append(reinterpret_cast<const char*>(sizes), sizeof sizes);
    metadata.append(name).append(value);
  }
};

// One stream and its call, from its headers until it is closed; the session may reuse the object afterwards.
struct Stream {
  int32_t id = 0;
  RequestHead head;
  bool ignored = false;     // was refused: further input is dropped
  bool announced = false;   // the host knows the call
  bool input_over = false;  // the client has sent its last message
  bool responded = false;   // the headers of the response are submitted
  bool deferred = false;    // has no output: waits for resume
  bool finished = false;    // the status is known
  bool wants_room = false;  // the host waits for the event `room`
  bool overdue = false;     // its deadline has passed while its response was being sent
  bool compressed = false;  // whether `message` is
  Encoding packing = IDENTITY;  // of the response
  int status = OK;
  std::string text;         // of the status, percent-encoded
  std::string load;         // value of the trailer with the load report; "" for none
  bool load_is_binary = false;  // its name ends in -bin
  int64_t deadline_ns = NEVER;
  int64_t begun_ns = 0;     // when its incomplete message began, for a unary call its headers came
  Assembly incoming;
  void* message = nullptr;  // of a unary call, complete
  size_t untaken = 0;       // bytes of complete messages that the host has not consumed
  size_t held = 0;          // bytes that Holdings counts for it
  size_t unpaid = 0;        // bytes from decompression, see Session::owe
  size_t withheld = 0;      // received bytes that do not reopen the window yet
  Outgoing outgoing;
  void* tag = nullptr;      // the host's object of the call
  Stream* previous = nullptr;
  Stream* next = nullptr;

  void clear(Memory& memory, Reserve& reserve) {
    incoming.clear(memory, reserve);
    outgoing.clear(memory);
    if (message != nullptr) memory.release(message);
    head.clear();
    ignored = announced = input_over = responded = deferred = finished = wants_room = false;
    compressed = overdue = false;
    packing = IDENTITY;
    status = OK;
    text.clear();
    load.clear();
    load_is_binary = false;
    deadline_ns = NEVER;
    begun_ns = 0;
    message = tag = nullptr;
    untaken = withheld = held = unpaid = 0;
  }
};

}  // namespace core_grpc
