// Any bytes as the JSON of a v2 request: reading never leaves the text, and asks for no more memory than
// it may; BYTES tensors that were read are whole, and every text is UTF-8.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "frontends/http/native/infer_request.hpp"
#include "frontends/http/native/json_writer.hpp"

using namespace http_json;

namespace {

constexpr size_t kMostBytes = 1 << 16;  // of a tensor

void require(bool holds) {
  if (!holds) std::abort();
}

using Blocks = std::vector<std::unique_ptr<char[]>>;

char* take(void* context, size_t size, void** memory) {
  require(size <= kMostBytes);
  auto& blocks = *static_cast<Blocks*>(context);
  blocks.push_back(std::make_unique<char[]>(size));
  *memory = blocks.back().get();
  return blocks.back().get();
}

void require_utf8(Text text) {
  const char* end = text.data + text.size;
  for (const char* at = text.data; at < end;) {
    const size_t length = static_cast<unsigned char>(*at) < 0x80 ? 1 : utf8_length(at, end);
    require(length > 0);
    at += length;
  }
}

// What was read can be written, and is read again as the same.
void require_same_again(const Request& request, const Input& input) {
  size_t count = 1;
  for (size_t i = 0; i < input.dimension_count; ++i) {
    count *= static_cast<size_t>(request.dimensions[input.first_dimension + i]);
  }
  if (count == 0) return;
  const char* elements = static_cast<const char*>(input.memory);
  const bool text = input.type == DataType::kBytes;
  const size_t room = text ? room_for_strings(elements, input.size, count)
                           : room_for_numbers(input.type, count);
  require(room > 0);
  std::vector<char> json(room), again(input.size);
  const char* end = text ? write_strings(json.data(), elements, input.size, count)
                         : write_array(json.data(), input.type, elements, count);
  Cursor cursor(json.data(), end);
  require(text ? read_strings(cursor, count, input.size, again)
               : read_numbers(cursor, input.type, count, again.data()));
  require(cursor.at() == end);
  require(std::memcmp(again.data(), elements, input.size) == 0);
  // And so are its numbers where they stand, from their first byte to their last one.
  require(text == (input.numbers.size == 0));
  if (text) return;
  const char* behind = input.numbers.data + input.numbers.size;
  require(read_numbers(input.numbers.data, behind, input.type, count, again.data()) == behind);
  require(std::memcmp(again.data(), elements, input.size) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of exactly this size, so that a byte too far is seen.
  std::unique_ptr<char[]> json(new char[size]);
  if (size > 0) std::memcpy(json.get(), data, size);
  Request request;
  Blocks blocks;
  if (!RequestReader(json.get(), size, kMostBytes, {take, &blocks}, request).read()) return 0;
  require_utf8(request.id);
  require_utf8(request.sequence_name);
  for (const Parameter& parameter : request.parameters) {
    require_utf8(parameter.key);
    require_utf8(parameter.text);
  }
  for (const Output& output : request.outputs) require_utf8(output.name);
  for (const Input& input : request.inputs) {
    require_utf8(input.name);
    if (input.source == Source::kData) require_same_again(request, input);
  }
  return 0;
}
