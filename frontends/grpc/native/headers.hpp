// Parsers for the values of gRPC's request headers.
//
// Source of the rules: the gRPC over HTTP/2 protocol description (PROTOCOL-HTTP2.md of gRPC).
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace core_grpc {

constexpr int64_t NEVER = std::numeric_limits<int64_t>::max();

// Compression of messages. A set of encodings is a number with the bits 1 << encoding.
enum Encoding : uint8_t { IDENTITY = 0, GZIP = 1, DEFLATE = 2, UNKNOWN_ENCODING = 3 };

inline bool same_word(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    char letter = text[i];
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter + 32);
    if (letter != lower[i]) return false;
  }
  return true;
}

inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Whether a content-type is gRPC's: application/grpc, alone or with a +format or ;parameters.
inline bool is_grpc_content(std::string_view type) {
  constexpr std::string_view name = "application/grpc";
  if (!same_word(type.substr(0, name.size()), name)) return false;
  return type.size() == name.size() || type[name.size()] == '+' || type[name.size()] == ';';
}

// Return a grpc-timeout (one to eight digits and a unit H, M, S, m, u or n) in nanoseconds; -1 for other
// text.
inline int64_t timeout_ns(std::string_view text) {
  if (text.size() < 2 || text.size() > 9) return -1;
  int64_t amount = 0;
  for (char digit : text.substr(0, text.size() - 1)) {
    if (digit < '0' || digit > '9') return -1;
    amount = amount * 10 + (digit - '0');
  }
  int64_t unit;
  switch (text.back()) {
    case 'H': unit = 3'600'000'000'000; break;
    case 'M': unit = 60'000'000'000; break;
    case 'S': unit = 1'000'000'000; break;
    case 'm': unit = 1'000'000; break;
    case 'u': unit = 1'000; break;
    case 'n': unit = 1; break;
    default: return -1;
  }
  // The nanoseconds of eight digits of hours exceed 64 bits: use the largest number.
  constexpr int64_t longest = NEVER / 4;
  return amount > longest / unit ? longest : amount * unit;
}

inline Encoding encoding_of(std::string_view name) {
  if (name == "identity") return IDENTITY;
  if (name == "gzip") return GZIP;
  if (name == "deflate") return DEFLATE;
  return UNKNOWN_ENCODING;
}

// Return the set of the known encodings in a grpc-accept-encoding, and IDENTITY.
inline uint8_t accepted_encodings(std::string_view list) {
  uint8_t found = 1 << IDENTITY;
  while (!list.empty()) {
    size_t comma = list.find(',');
    Encoding each = encoding_of(trimmed(list.substr(0, comma)));
    if (each != UNKNOWN_ENCODING) found |= static_cast<uint8_t>(1 << each);
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return found;
}

// Decode base64, with or without padding, and append the bytes to `out`. False for invalid text, with `out`
// unchanged.
inline bool append_base64(std::string_view text, std::string& out) {
  const size_t before = out.size();
  if (text.size() % 4 == 0) {
    for (int i = 0; i < 2 && !text.empty() && text.back() == '='; ++i) text.remove_suffix(1);
  }
  uint32_t bits = 0;
  int count = 0;
  for (char letter : text) {
    uint32_t six;
    if (letter >= 'A' && letter <= 'Z') six = static_cast<uint32_t>(letter - 'A');
    else if (letter >= 'a' && letter <= 'z') six = static_cast<uint32_t>(letter - 'a' + 26);
    else if (letter >= '0' && letter <= '9') six = static_cast<uint32_t>(letter - '0' + 52);
    else if (letter == '+') six = 62;
    else if (letter == '/') six = 63;
    else { out.resize(before); return false; }
    bits = (bits << 6) | six;
    count += 6;
    if (count >= 8) {
      count -= 8;
      out.push_back(static_cast<char>((bits >> count) & 0xFF));
    }
  }
  if (count == 6) {  // one character has too few bits for a byte
    out.resize(before);
    return false;
  }
  return true;
}

// Return a text as grpc-message: percent signs, bytes that are not printable ASCII, and a first and last
// space become %XX.
inline std::string percent_encoded(std::string_view text) {
  static const char digits[] = "0123456789ABCDEF";
  std::string found;
  found.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = static_cast<unsigned char>(text[i]);
    bool at_end = i == 0 || i + 1 == text.size();
    if (byte >= 0x20 && byte <= 0x7E && byte != '%' && !(byte == ' ' && at_end)) {
      found.push_back(text[i]);
    } else {
      found.push_back('%');
      found.push_back(digits[byte >> 4]);
      found.push_back(digits[byte & 15]);
    }
  }
  return found;
}

}  // namespace core_grpc
