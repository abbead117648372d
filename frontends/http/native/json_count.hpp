// Values are counted on the text, before anything is made of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>

#include "json_cursor.hpp"

namespace http_json {

// How many values and keys a text has, as far as its punctuation tells; exact for what is JSON.
inline size_t count_values(const char* at, const char* end) {
  constexpr auto counted = [] {
    std::array<unsigned char, 256> table{};
    for (const char c : {',', ':', '[', '{'}) table[static_cast<unsigned char>(c)] = 1;
    for (const char c : {']', '}'}) table[static_cast<unsigned char>(c)] = 2;
    return table;
  };
  static constexpr std::array<unsigned char, 256> kCounted = counted();
  size_t count = 1;
  bool opened = false;  // the last byte that is no space began a list or object
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
    if (kind == 2 && opened) --count;  // nothing was in it
    if (!is_space(c)) opened = c == '[' || c == '{';
  }
  return count;
}

}  // namespace http_json
