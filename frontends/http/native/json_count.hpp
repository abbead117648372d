// Counts the values of a JSON text before they become objects.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>

#include "json_cursor.hpp"

namespace http_json {

// Return the number of values and keys of a JSON text, from its punctuation; exact for valid JSON only.
inline size_t count_values(const char* at, const char* end) {
  constexpr auto counted = [] {
    std::array<unsigned char, 256> table{};
    for (const char c : {',', ':', '[', '{'}) table[static_cast<unsigned char>(c)] = 1;
    for (const char c : {']', '}'}) table[static_cast<unsigned char>(c)] = 2;
    return table;
  };
  static constexpr std::array<unsigned char, 256> kCounted = counted();
  size_t count = 1;
  bool opened = false;  // the last non-space byte opened a list or object
  while (at < end) {
    const char c = *at++;
    if (c == '"') {
      opened = false;
      const char* quote;
      for (;;) {
        quote = static_cast<const char*>(std::memchr(at, '"', static_cast<size_t>(end - at)));
        if (quote == nullptr) return count;
        const char* before = quote;
        while (before > at && before[-1] == '\\') --before;
        at = quote + 1;
        if ((quote - before) % 2 == 0) break;
      }
      continue;
    }
    const unsigned char kind = kCounted[static_cast<unsigned char>(c)];
    if (kind == 1) ++count;
    if (kind == 2 && opened) --count;  // it is empty
    if (!is_space(c)) opened = c == '[' || c == '{';
  }
  return count;
}

}  // namespace http_json
