// Request, Arrivals' settings and Settings: what a Loop is made of. Python fills them (engine.pyx).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace bench {

// A request, ready to be sent. HTTP: head and body. gRPC: the message behind its prefix of five bytes.
//
// The offsets say where numbers of a sequence are written before it is sent; -1 for none. In HTTP these are JSON:
// 20 characters for the id, 5 for a flag. In gRPC they are varints: 10 bytes for the id, 1 for a flag.
struct Request {
  std::string wire;
  int32_t id_at = -1;
  int32_t start_at = -1;
  int32_t end_at = -1;
};

enum class Protocol { http = 0, grpc = 1, grpc_stream = 2 };

// What the body of a response is: one answer; events of generate_stream; one answer of OpenAI; events of OpenAI.
enum class Answer { whole = 0, events = 1, chat = 2, chat_events = 3 };

enum class Pace { closed = 0, constant = 1, poisson = 2, intervals = 3 };

struct Sequences {
  bool on = false;
  uint32_t length = 0;     // requests of a sequence; 0 for those of its stream of data
  double variation = 0;    // part of `length` by which lengths differ at most
  uint64_t first_id = 1;
  uint64_t end_id = 0;     // ids are below this; 0 for no bound
};

// `streams` are lists of indices of `requests`. Without sequences, the requests of all streams are sent in turn.
struct Settings {
  Protocol protocol = Protocol::http;
  Answer answer = Answer::whole;
  std::string address;     // numeric, or the path of a Unix socket
  uint16_t port = 0;       // 0 for a Unix socket
  std::vector<std::pair<std::string, std::string>> headers;  // of gRPC; HTTP has them in the wire form
  std::string path;        // of gRPC
  bool decoupled = false;  // of a gRPC stream: a request ends with its final response
  Pace pace = Pace::closed;
  double rate = 0;         // requests per second
  double phase = 0;        // of constant pace: part of an interval before the first request
  std::vector<int64_t> intervals_ns;
  uint64_t seed = 1;
  uint32_t connections = 1;
  uint32_t most_connections = 1;  // an open loop opens more while all are busy
  int64_t timeout_ns = 0;
  std::vector<Request> requests;
  std::vector<std::vector<uint32_t>> streams;
  Sequences sequences;
};

}  // namespace bench
