// The parts of a request's JSON that differ from one request of a client to the next.
//
// bytes ─► [take_…] ─► repeated_request.pyx.  Each function parses one part at `at`, and returns the position
// after it: null for invalid text, and for rare valid text, which needs the parser of whole documents. No
// Python type, no allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "json_cursor.hpp"

namespace http_json {

constexpr uint64_t kMostElements = uint64_t{1} << 40;  // of a tensor; more are counted elsewhere

// Take exactly the given text.
inline const char* take_text(const char* at, const char* end, const char* text, size_t size) {
  if (static_cast<size_t>(end - at) < size || std::memcmp(at, text, size) != 0) return nullptr;
  return at + size;
}

// Take a JSON integer that is not negative into `value`.
inline const char* take_natural(const char* at, const char* end, int64_t& value) {
  return read_integer(at, end, value) && value >= 0 ? at : nullptr;
}

// Take a list of exactly `count` natural numbers into `sizes`, and set `elements` to their product. Null if
// the product exceeds kMostElements.
inline const char* take_shape(
    const char* at, const char* end, int64_t* sizes, size_t count, uint64_t& elements) {
  const auto skip = [&] {
    while (at != end && is_space(*at)) ++at;
    return at != end;
  };
  elements = 1;
  if (at == end || *at++ != '[') return nullptr;
  for (size_t i = 0; i < count; ++i) {
    if (i != 0 && (!skip() || *at++ != ',')) return nullptr;
    if (!skip() || (at = take_natural(at, end, sizes[i])) == nullptr) return nullptr;
    const uint64_t size = static_cast<uint64_t>(sizes[i]);
    if (size != 0 && elements > kMostElements / size) return nullptr;
    elements *= size;
  }
  return skip() && *at == ']' ? at + 1 : nullptr;
}

// Take the characters of a string up to its closing quote, which is not taken. Null for escapes and
// non-ASCII.
inline const char* take_plain(const char* at, const char* end) {
  while (at != end && kPlain[static_cast<unsigned char>(*at)]) ++at;
  return at != end && *at == '"' ? at : nullptr;
}

}  // namespace http_json
