// Fuzz target: any bytes as a ModelInferRequest.
//
// Whatever the reader accepts must lie within the bytes, and what it counted must be what is written.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "frontends/grpc/native/infer_message.hpp"

namespace {

// The same object for every input, as on the server: nothing of the last message may remain.
infer::Request request;

void check(bool holds) {
  if (!holds) std::abort();
}

void check_text(infer::Span message, infer::Span text) {
  if (text.size == 0) return;
  check(text.data >= message.data && text.data + text.size <= message.data + message.size);
  check(infer::is_utf8(text));
}

void check_input(infer::Span message, const infer::Input& input) {
  check_text(message, input.name);
  check(input.type != infer::kNoDataType);
  check(input.dimension_count <= infer::kMostDimensions);
  check(input.first_dimension + input.dimension_count <= request.dimensions.size());
  if (!input.contents.present) {
    if (input.raw.size == 0) return;
    check(input.raw.data >= message.data);
    check(input.raw.data + input.raw.size <= message.data + message.size);
    return;
  }
  // Memory of exactly that size: writing more is an error of ASan, writing less is seen here.
  const size_t size = input.contents.size_as(input.type);
  std::vector<char> first(size, 'a'), second(size, 'b');
  infer::ContentsWriter(first.data(), input.type).write(input.contents, request.runs);
  infer::ContentsWriter(second.data(), input.type).write(input.contents, request.runs);
  check(first == second);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy in memory of that very size, so that ASan sees a reader that goes too far.
  const std::vector<char> copy(data, data + size);
  const infer::Span message{size ? copy.data() : "", size};
  if (!infer::RequestReader(request).read(message)) return 0;
  check_text(message, request.model_name);
  check_text(message, request.id);
  check(request.model_version >= -1);
  for (const infer::Parameter& parameter : request.parameters) {
    check_text(message, parameter.key);
    check_text(message, parameter.text);
    check(parameter.kind <= infer::kUint64Parameter);
  }
  for (const infer::Input& input : request.inputs) check_input(message, input);
  for (const infer::Output& output : request.outputs) {
    check_text(message, output.name);
    check(output.class_count >= 0);
    check(infer::place_of(output.name, 64) < 64);
  }
  return 0;
}
