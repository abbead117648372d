// Characters of JSON strings: plain characters, UTF-8, and escapes.
//
// No function reads at or after `end`. Errors of an escape have the texts of RapidJSON, which Triton uses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace http_json {

// Return a table: whether a byte is an ASCII character that stands for itself in a string.
constexpr std::array<bool, 256> plain_bytes() {
  std::array<bool, 256> table{};
  for (size_t i = 0x20; i < 0x80; ++i) table[i] = i != '"' && i != '\\';
  return table;
}
inline constexpr std::array<bool, 256> kPlain = plain_bytes();

// Return the size in bytes of the UTF-8 character at `at`, whose first byte is not ASCII; 0 for invalid
// UTF-8. Table 3-7 of the Unicode standard lists the well-formed sequences.
inline size_t utf8_length(const char* at, const char* end) {
  const auto byte = [at](int i) { return static_cast<unsigned char>(at[i]); };
  const auto follows = [&](int i) { return (byte(i) & 0xC0) == 0x80; };
  const ptrdiff_t left = end - at;
  const unsigned char first = byte(0);
  if (first >= 0xC2 && first <= 0xDF) return left >= 2 && follows(1) ? 2 : 0;
  if ((first & 0xF0) == 0xE0) {
    if (left < 3 || !follows(1) || !follows(2)) return 0;
    const bool overlong = first == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = first == 0xED && byte(1) >= 0xA0;
    return overlong || surrogate ? 0 : 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (left < 4 || !follows(1) || !follows(2) || !follows(3)) return 0;
    const bool overlong = first == 0xF0 && byte(1) < 0x90;
    const bool beyond = first == 0xF4 && byte(1) >= 0x90;
    return overlong || beyond ? 0 : 4;
  }
  return 0;
}

// Parse four hexadecimal digits into `code`; return false for other text, and `at` is undefined then.
inline bool take_hex(const char*& at, const char* end, uint32_t& code) {
  if (end - at < 4) return false;
  code = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = *at++;
    const char letter = static_cast<char>(c | 0x20);
    uint32_t digit;
    if (c >= '0' && c <= '9') digit = static_cast<uint32_t>(c - '0');
    else if (letter >= 'a' && letter <= 'f') digit = static_cast<uint32_t>(letter - 'a' + 10);
    else return false;
    code = code << 4 | digit;
  }
  return true;
}

// Write the UTF-8 of a character to `to`; return its size, 1 to 4 bytes.
inline size_t encode_utf8(uint32_t code, char* to) {
  const auto tail = [code](int shift) { return static_cast<char>(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) return to[0] = static_cast<char>(code), 1;
  if (code < 0x800) return to[0] = static_cast<char>(0xC0 | code >> 6), to[1] = tail(0), 2;
  if (code < 0x10000) {
    return to[0] = static_cast<char>(0xE0 | code >> 12), to[1] = tail(6), to[2] = tail(0), 3;
  }
  to[0] = static_cast<char>(0xF0 | code >> 18);
  return to[1] = tail(12), to[2] = tail(6), to[3] = tail(0), 4;
}

// Write the UTF-8 of the escape at `at` to `to`, and move `at` after the escape. Return its size, 1 to 4
// bytes; 0 for an invalid escape: `mistake` has the error text then.
inline size_t take_escape(const char*& at, const char* end, char* to, const char*& mistake) {
  mistake = "Invalid escape character in string";
  if (end - at < 2) return 0;
  const char name = at[1];
  at += 2;
  switch (name) {
    case '"': case '\\': case '/': *to = name; return 1;
    case 'b': *to = '\b'; return 1;
    case 'f': *to = '\f'; return 1;
    case 'n': *to = '\n'; return 1;
    case 'r': *to = '\r'; return 1;
    case 't': *to = '\t'; return 1;
    case 'u': break;
    default: return 0;
  }
  uint32_t code, low;
  mistake = "Incorrect hex digit after \\u escape in string";
  if (!take_hex(at, end, code)) return 0;
  if (code < 0xD800 || code >= 0xE000) return encode_utf8(code, to);
  const bool follows = code < 0xDC00 && end - at >= 2 && at[0] == '\\' && at[1] == 'u';
  if (follows && !take_hex(at += 2, end, low)) return 0;
  mistake = "The surrogate pair in string is invalid";
  if (!follows || low < 0xDC00 || low >= 0xE000) return 0;
  return encode_utf8(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00), to);
}

}  // namespace http_json
