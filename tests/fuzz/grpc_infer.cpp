// Fuzz target: any bytes as a ModelInferRequest.
//
// Whatever the reader accepts must lie within the bytes, and what it counted must be what is written.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "frontends/grpc/native/entries.hpp"
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

// Inputs with parameters and contents, as ModelInferRequest has them; see MessageShape for the others.
infer::Schema schema() {
  using infer::FieldKind;
  infer::Schema made;
  const size_t root = made.add_type(), input = made.add_type(), entry = made.add_type();
  const size_t contents = made.add_type();
  made.set(root, 1, {FieldKind::kText, false, false, 0, 0});
  made.set(root, 5, {FieldKind::kMessage, true, false, 0, input});
  made.set(root, 7, {FieldKind::kText, true, false, 0, 0});
  made.set(input, 1, {FieldKind::kText, false, false, 0, 0});
  made.set(input, 3, {FieldKind::kNumber, true, false, 0, 0});
  made.set(input, 4, {FieldKind::kMessage, true, false, 0, entry});
  made.set(input, 5, {FieldKind::kMessage, false, false, 0, contents});
  made.set(entry, 2, {FieldKind::kMessage, false, false, 0, entry});
  made.set(contents, 6, {FieldKind::kNumber, true, true, 4, 0});
  return made;
}

// A message within narrow bounds is within wide ones.
void check_entries(infer::Span message) {
  static const infer::Schema shape = schema();
  const infer::Entries narrow = infer::EntryCounter(shape, {4, 16, 32}).count(message, 0);
  const infer::Entries wide = infer::EntryCounter(shape, {1 << 20, 1 << 20, 1 << 20}).count(message, 0);
  if (narrow == infer::Entries::kWithin) check(wide == infer::Entries::kWithin);
  if (narrow == infer::Entries::kMalformed) check(wide == infer::Entries::kMalformed);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy in memory of that very size, so that ASan sees a reader that goes too far.
  const std::vector<char> copy(data, data + size);
  const infer::Span message{size ? copy.data() : "", size};
  check_entries(message);
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
