// Fuzz target: any bytes as the head of an HTTP request.
//
// What is accepted must lie within the bytes and have the promised form, written here a second time and
// more simply; bytes that come later never change a verdict.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "frontends/http/native/head.hpp"

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

// A reader in memory of exactly that size, so that ASan sees one that goes too far.
head::Head read(const uint8_t* data, size_t size) {
  static std::vector<char> copy;
  copy.assign(data, data + size);
  copy.shrink_to_fit();
  return head::read(size ? copy.data() : "", size);
}

std::string text(const uint8_t* data, const std::vector<char>& copy, head::Span span) {
  check(span.data >= copy.data() && span.data + span.size <= copy.data() + copy.size());
  return std::string(reinterpret_cast<const char*>(data) + (span.data - copy.data()), span.size);
}

void check_infer(const uint8_t* data, size_t size) {
  const std::vector<char> copy(data, data + size);
  const head::Head found = head::read(copy.data(), size);
  const std::string all(copy.data(), found.size);
  const std::string model = text(data, copy, found.model);
  std::string line = "POST /v2/models/" + model;
  if (found.version >= 0) {
    // The number may have zeros before it.
    const std::string versions = line + "/versions/";
    check(all.compare(0, versions.size(), versions) == 0);
    size_t at = versions.size();
    while (all[at] == '0' && all[at + 1] != '/') ++at;
    const std::string rest = std::to_string(found.version) + "/infer HTTP/1.1\r\n";
    check(all.compare(at, rest.size(), rest) == 0);
  } else {
    line += "/infer HTTP/1.1\r\n";
    check(all.compare(0, line.size(), line) == 0);
  }
  check(!model.empty() && model.find_first_of("/%?# \r\n") == std::string::npos);
  if (found.has_json_size) text(data, copy, found.json_size);
}

void check_framing(const uint8_t* data, const head::Head& found) {
  const std::string all(reinterpret_cast<const char*>(data), found.size);
  check(found.size >= 4 && found.size <= head::kMostBytes);
  check(all.find("\r\n\r\n") == found.size - 4);
  check(found.body_size >= 0 && found.body_size <= head::kLargestBody);
  for (size_t at = 0; at < all.size(); ++at) {
    const unsigned char c = static_cast<unsigned char>(all[at]);
    check((c >= 0x20 && c < 0x7f) || c == '\t' || c == '\r' || c == '\n');
    if (c == '\n') check(at && all[at - 1] == '\r');
    if (c == '\n' && at + 1 < all.size()) check(all[at + 1] != ' ' && all[at + 1] != '\t');
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 2 * head::kMostBytes) return 0;
  const head::Head whole = read(data, size);
  if (whole.verdict == head::Infer || whole.verdict == head::Regular) check_framing(data, whole);
  if (whole.verdict == head::Infer) check_infer(data, size);
  // One beginning, chosen by the input itself, so that every place is tried in the long run.
  const size_t some = size ? (size_t{data[size / 2]} * 31 + data[0]) % (size + 1) : 0;
  const head::Head part = read(data, some);
  if (part.verdict != head::More) check(part.verdict == whole.verdict);
  if (part.verdict == head::Infer) check(part.size == whole.size);
  return 0;
}
