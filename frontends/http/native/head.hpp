// A strict parser for the head of one HTTP/1.1 request, in the common form of inference clients.
//
// bytes ─► [read] ─► Head.  It decides which path serves a request, not whether the request is valid: every
// unusual head is Foreign, and aiohttp, which knows all of HTTP, gets its bytes unchanged. Every head that is
// accepted here has the same meaning for aiohttp.
//
// No Python type, no allocation, no exception. Field names and grammar follow RFC 9110 and RFC 9112.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace head {

// Largest head in bytes; below aiohttp's limit for one line, so that aiohttp's limits do not matter here.
constexpr size_t kMostBytes = 8000;
constexpr int kMostFields = 64;
constexpr int64_t kLargestBody = 0x7fffffff;

struct Span {
  const char* data = nullptr;
  size_t size = 0;

  bool equals(const char* text) const {
    return size == std::strlen(text) && std::memcmp(data, text, size) == 0;
  }
};

enum Verdict {
  More,     // an incomplete regular head
  Infer,    // POST …/infer for one model, with an uncompressed body of known size
  Regular,  // another request with a known end
  Foreign,  // any other bytes: only aiohttp knows their meaning and their end
};

// A parsed head. The spans point into the parsed bytes.
struct Head {
  Verdict verdict = More;
  size_t size = 0;          // bytes of the head, with the empty line; of Infer and Regular
  int64_t body_size = 0;    // of Infer and Regular
  Span length;              // the unparsed value of Content-Length
  Span model;               // of Infer
  int64_t version = -1;     // of Infer; -1 for none
  bool has_json_size = false;
  Span json_size;           // the unparsed value of Inference-Header-Content-Length
  bool has_origin = false;  // a browser names the origin of its page
};

namespace detail {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

inline char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

inline bool is_letter(char c) { return lower(c) >= 'a' && lower(c) <= 'z'; }

// Whether the parser accepts a character in the name of a model: unreserved characters of a URI only.
inline bool is_unreserved(char c) {
  return is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

// Whether the parser accepts a character in a field name. Tokens permit more, but common fields do not use
// them.
inline bool is_name(char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '_'; }

inline bool is_value(char c) { return (c >= 0x20 && c < 0x7f) || c == '\t'; }

// Whether `text` equals `wanted`, which is in lower case, ignoring case.
inline bool is(Span text, const char* wanted, size_t size) {
  if (text.size != size) return false;
  for (size_t i = 0; i < size; ++i) {
    if (lower(text.data[i]) != wanted[i]) return false;
  }
  return true;
}

// Whether `text` contains `wanted`, which is in lower case, ignoring case.
inline bool has(Span text, const char* wanted, size_t size) {
  for (size_t at = 0; at + size <= text.size; ++at) {
    if (is(Span{text.data + at, size}, wanted, size)) return true;
  }
  return false;
}

// Return the value of a text of 1 to 18 digits; -1 for other text, and for a value above `most`.
inline int64_t number(Span text, int64_t most) {
  if (text.size == 0 || text.size > 18) return -1;
  int64_t value = 0;
  for (size_t i = 0; i < text.size; ++i) {
    if (!is_digit(text.data[i])) return -1;
    value = value * 10 + (text.data[i] - '0');
  }
  return value > most ? -1 : value;
}

template <size_t N>
bool is(Span text, const char (&wanted)[N]) {
  return is(text, wanted, N - 1);
}

template <size_t N>
bool has(Span text, const char (&wanted)[N]) {
  return has(text, wanted, N - 1);
}

// Fields that a request has at most once, as bits of `Reader::seen_`.
enum Once : unsigned {
  kHost = 1,
  kContentLength = 2,
  kConnection = 4,
  kContentType = 8,
  kUserAgent = 16,
  kAcceptEncoding = 32,
  kJsonSize = 64,
};

class Reader {
 public:
  Reader(const char* data, size_t size)
      : begin_(data), at_(data), end_(data + (size < kMostBytes ? size : kMostBytes)),
        cut_(size >= kMostBytes) {}

  Head read() {
    Verdict verdict = lines();
    // A head beyond the limit is Foreign.
    if (verdict == More && cut_) verdict = Foreign;
    head_.verdict = verdict;
    return head_;
  }

 private:
  // Parse the lines of the head; return the verdict, More if they are incomplete.
  Verdict lines() {
    Span line;
    if (Verdict found = next(line); found != Infer) {
      // A client of another protocol gets its error at once, not after its first line.
      return found == More && !may_be_request() ? Foreign : found;
    }
    if (!request_line(line)) return Foreign;
    for (int fields = 0;; ++fields) {
      if (Verdict found = next(line); found != Infer) return found;
      if (line.size == 0) return complete();
      if (fields == kMostFields || !field(line)) return Foreign;
    }
  }

  // Set `line` to the next line, without its end. Return Infer if it is complete, else More; Foreign for an
  // invalid character, also in an incomplete line.
  Verdict next(Span& line) {
    const char* start = at_;
    const char* stop = at_;
    while (stop != end_ && is_value(*stop)) ++stop;
    if (stop == end_) return More;
    if (*stop != '\r') return Foreign;
    if (stop + 1 == end_) return More;
    if (stop[1] != '\n') return Foreign;
    line = Span{start, static_cast<size_t>(stop - start)};
    at_ = stop + 2;
    return Infer;
  }

  bool may_be_request() const {
    const size_t size = static_cast<size_t>(end_ - begin_);
    const auto starts = [&](const char* text, size_t length) {
      return std::memcmp(begin_, text, size < length ? size : length) == 0;
    };
    return size == 0 || starts("POST /", 6) || starts("GET /", 5);
  }

  Verdict complete() {
    head_.size = static_cast<size_t>(at_ - begin_);
    if (!(seen_ & kHost)) return Foreign;
    if (infer_ && (seen_ & kContentLength)) return Infer;
    return Regular;
  }

  // METHOD SP /path SP HTTP/1.1
  bool request_line(Span line) {
    const char* at = line.data;
    const char* end = line.data + line.size;
    while (at != end && *at >= 'A' && *at <= 'Z') ++at;
    const Span method{line.data, static_cast<size_t>(at - line.data)};
    // HEAD and CONNECT have framing of their own; a long method may be invalid.
    if (!method.equals("GET") && !method.equals("POST")) return false;
    if (at == end || *at++ != ' ' || at == end || *at != '/') return false;
    const char* path = at;
    while (at != end && *at > ' ') ++at;
    const Span target{path, static_cast<size_t>(at - path)};
    if (!(Span{at, static_cast<size_t>(end - at)}).equals(" HTTP/1.1")) return false;
    infer_ = method.equals("POST") && infer_target(target);
    return true;
  }

  // /v2/models/NAME[/versions/N]/infer
  bool infer_target(Span target) {
    constexpr char kStart[] = "/v2/models/";
    constexpr size_t kStartSize = sizeof kStart - 1;
    if (target.size < kStartSize || std::memcmp(target.data, kStart, kStartSize) != 0) return false;
    const char* at = target.data + kStartSize;
    const char* end = target.data + target.size;
    const char* name = at;
    while (at != end && is_unreserved(*at)) ++at;
    head_.model = Span{name, static_cast<size_t>(at - name)};
    if (head_.model.size == 0) return false;
    Span rest{at, static_cast<size_t>(end - at)};
    if (rest.equals("/infer")) return true;
    constexpr char kVersions[] = "/versions/";
    constexpr size_t kVersionsSize = sizeof kVersions - 1;
    if (rest.size < kVersionsSize || std::memcmp(at, kVersions, kVersionsSize) != 0) return false;
    const char* digits = at + kVersionsSize;
    at = digits;
    while (at != end && is_digit(*at)) ++at;
    head_.version = number(Span{digits, static_cast<size_t>(at - digits)}, INT64_MAX);
    return head_.version >= 0 && (Span{at, static_cast<size_t>(end - at)}).equals("/infer");
  }

  // NAME ":" OWS VALUE OWS
  bool field(Span line) {
    const char* at = line.data;
    const char* end = line.data + line.size;
    while (at != end && is_name(*at)) ++at;
    const Span name{line.data, static_cast<size_t>(at - line.data)};
    if (name.size == 0 || at == end || *at++ != ':') return false;
    while (at != end && (*at == ' ' || *at == '\t')) ++at;
    while (end != at && (end[-1] == ' ' || end[-1] == '\t')) --end;
    return known(name, Span{at, static_cast<size_t>(end - at)});
  }

  bool once(unsigned field) {
    if (seen_ & field) return false;
    seen_ |= field;
    return true;
  }

  // Process a field. Return false for one that changes the framing, for a repeated one that must be unique,
  // and for an unusual value: the head is Foreign then.
  bool known(Span name, Span value) {
    switch (name.size) {
      case 4:
        if (is(name, "host")) return value.size != 0 && once(kHost);
        return !is(name, "etag");
      case 6:
        if (is(name, "expect")) infer_ = false;  // aiohttp sends 100 Continue
        if (is(name, "origin")) head_.has_origin = true;
        return !is(name, "server");
      case 7:
        // The server offers only WebSocket, and only for GET: ignore the field in other requests.
        if (is(name, "upgrade")) infer_ = false;
        return true;
      case 10:
        if (is(name, "connection")) {
          if (!once(kConnection) || has(value, "close")) return false;
          if (is(value, "keep-alive")) return true;
          infer_ = false;
          return has(value, "upgrade");
        }
        if (is(name, "user-agent")) return once(kUserAgent);
        return true;
      case 12:
        if (is(name, "content-type")) {
          if (is(Span{value.data, value.size < 10 ? value.size : 10}, "multipart/")) infer_ = false;
          return once(kContentType);
        }
        if (is(name, "grpc-timeout")) infer_ = false;
        return !is(name, "max-forwards");
      case 13:
        return !is(name, "content-range");
      case 14:
        if (!is(name, "content-length")) return true;
        head_.body_size = number(value, kLargestBody);
        head_.length = value;
        return head_.body_size >= 0 && once(kContentLength);
      case 15:
        if (!is(name, "accept-encoding")) return true;
        // The response may need compression.
        if (has(value, "gzip") || has(value, "deflate")) infer_ = false;
        return once(kAcceptEncoding);
      case 16:
        if (is(name, "content-encoding")) infer_ = false;
        return !is(name, "content-location") && !is(name, "proxy-connection");
      case 17:
        return !is(name, "transfer-encoding");
      case 18:
        return !is(name, "sec-websocket-key1");
      case 28:
        if (is(name, "endpoint-load-metrics-format")) infer_ = false;  // the response reports the load
        return true;
      case 31:
        if (!is(name, "inference-header-content-length")) return true;
        head_.has_json_size = true;
        head_.json_size = value;
        return once(kJsonSize);
      default:
        return true;
    }
  }

  const char* begin_;
  const char* at_;
  const char* end_;
  bool cut_;
  bool infer_ = false;
  unsigned seen_ = 0;
  Head head_;
};

}  // namespace detail

// Parse the head at the start of `data`, which may be incomplete; the spans of the result point into it.
inline Head read(const char* data, size_t size) { return detail::Reader(data, size).read(); }

}  // namespace head
