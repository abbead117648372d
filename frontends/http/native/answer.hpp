// The head of a response, with its fields in the order of aiohttp.
//
// status line, own fields ─► [write_head] ─► bytes.  No Python type, no allocation; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>

namespace answer {

// Largest number of bytes that `write_head` adds to `start`.
constexpr size_t kMostBytes = 160;
constexpr size_t kDateSize = 29;

namespace detail {

inline char* put(char* at, const char* text, size_t size) {
  std::memcpy(at, text, size);
  return at + size;
}

inline char* put_number(char* at, uint64_t value) {
  char digits[20];
  size_t count = 0;
  do {
    digits[count++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value);
  while (count) *at++ = digits[--count];
  return at;
}

inline char* put_two(char* at, int value) {
  *at++ = static_cast<char>('0' + value / 10 % 10);
  *at++ = static_cast<char>('0' + value % 10);
  return at;
}

}  // namespace detail

// Write a time in the format of the field Date, in kDateSize bytes: Sun, 06 Nov 1994 08:49:37 GMT.
inline void write_date(char* at, std::time_t seconds) {
  static const char kDays[] = "SunMonTueWedThuFriSat";
  static const char kMonths[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
  std::tm now{};
  gmtime_r(&seconds, &now);
  at = detail::put(at, kDays + 3 * now.tm_wday, 3);
  at = detail::put(at, ", ", 2);
  at = detail::put_two(at, now.tm_mday);
  *at++ = ' ';
  at = detail::put(at, kMonths + 3 * now.tm_mon, 3);
  *at++ = ' ';
  const int year = now.tm_year + 1900;
  at = detail::put_two(at, year / 100);
  at = detail::put_two(at, year % 100);
  *at++ = ' ';
  at = detail::put_two(at, now.tm_hour);
  *at++ = ':';
  at = detail::put_two(at, now.tm_min);
  *at++ = ':';
  at = detail::put_two(at, now.tm_sec);
  detail::put(at, " GMT", 4);
}

// Return the current date in the format of write_date, without a final zero. Valid until the next call. One
// thread.
inline const char* date() {
  static std::time_t written = -1;
  static char text[kDateSize];
  const std::time_t now = std::time(nullptr);
  if (now != written) {
    write_date(text, now);
    written = now;
  }
  return text;
}

// Write the head of a response, with its empty line; return the position after it.
//
// at          memory for start_size + kMostBytes bytes
// start       status line and first fields, without the last end of line
// json_size   appended to `start` as the value of its last field; nothing is appended if it is negative
// body_size   value of Content-Length
// date        kDateSize bytes
inline char* write_head(char* at, const char* start, size_t start_size, int64_t json_size,
                        uint64_t body_size, const char* date) {
  using detail::put;
  static const char kServer[] = "\r\nServer: core\r\nContent-Length: ";
  static const char kDate[] = "\r\nDate: ";
  at = put(at, start, start_size);
  if (json_size >= 0) at = detail::put_number(at, static_cast<uint64_t>(json_size));
  at = put(at, kServer, sizeof kServer - 1);
  at = detail::put_number(at, body_size);
  at = put(at, kDate, sizeof kDate - 1);
  at = put(at, date, kDateSize);
  return put(at, "\r\n\r\n", 4);
}

}  // namespace answer
