// Numbers against the C library: text is read as strtod reads it, and a float is written so that it is
// read as itself, with no more digits than it needs.
//
// Input: a byte that says what the rest is: text of a number, or the bits of an FP64 or FP32.
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "frontends/http/native/json_number.hpp"
#include "frontends/http/native/json_writer.hpp"

using namespace http_json;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

bool same(double left, double right) {
  return std::isnan(left) ? std::isnan(right) : std::memcmp(&left, &right, sizeof left) == 0;
}

void read_text(const std::string& text) {
  const char* at = text.data();
  double value = 0;
  const bool read = read_real(at, text.data() + text.size(), value);
  require(at <= text.data() + text.size());
  if (!read) return;
  const std::string token(text.data(), at);
  // strtod gives "-0" and "-NaN" a sign.
  if (token != "-0" && token != "-NaN") require(same(value, std::strtod(token.c_str(), nullptr)));
  at = text.data();
  int64_t integer = 0;
  if (read_integer(at, text.data() + text.size(), integer)) {
    require(std::to_string(integer) == (token == "-0" ? "0" : token));
  }
}

template <class Float>
void write_bits(const char* data, size_t size) {
  Float value = 0;
  if (size < sizeof value) return;
  std::memcpy(&value, data, sizeof value);
  char* json = new char[32];  // what room_for_numbers allows, so that a byte too many is seen
  const DataType type = sizeof value == 4 ? DataType::kFp32 : DataType::kFp64;
  char* text = new char[room_for_numbers(type, 1)];
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  const char* end = write_array(text, type, bytes, 1);
  require(*text == '[' && end[-1] == ']');
  const char* at = text + 1;
  double again = 0;
  require(std::isinf(value) || read_real(at, end - 1, again) || at == end - 1);
  if (std::isfinite(value)) {
    require(at == end - 1 && same(static_cast<Float>(again), value));
    // Nothing shorter gives the value back.
    const auto digits = [](const char* from, const char* to) {
      std::string found;
      for (; from < to && *from != 'e'; ++from) {
        if (is_digit(*from) && (*from != '0' || !found.empty())) found += *from;
      }
      while (!found.empty() && found.back() == '0') found.pop_back();
      return found;
    };
    const auto scientific = std::to_chars(json, json + 32, value, std::chars_format::scientific);
    require(digits(text, end) == digits(json, scientific.ptr));
  }
  delete[] text;
  delete[] json;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const char* rest = reinterpret_cast<const char*>(data) + 1;
  if (data[0] % 3 == 0) read_text(std::string(rest, size - 1));
  if (data[0] % 3 == 1) write_bits<double>(rest, size - 1);
  if (data[0] % 3 == 2) write_bits<float>(rest, size - 1);
  return 0;
}
