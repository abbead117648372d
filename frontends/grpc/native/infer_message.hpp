// ModelInferRequest: encoded bytes → a struct of views.
//
//   bytes ─► [read] ─► Request (views of the bytes) ─► infer_request.pyx ─► InferenceRequest
//
// One pass, no copies. `read` returns true only for a message that every protobuf runtime reads in the same
// way, without errors, shared memory and parameters of Triton. For all other messages the caller uses
// protobuf, so that Python has the only code for errors and rare requests.
//
// The rules of protobuf: fields have any order; of several values of a field or map key the last one wins;
// several nested messages are merged; text is UTF-8; unknown fields and wrong wire types are skipped.
#pragma once

#include <vector>

#include "infer_contents.hpp"
#include "wire.hpp"

namespace infer {

// The limits of protocol/parse.py, which raises the error for more.
constexpr size_t kMostEntries = 10000;  // inputs, outputs and parameters, each
constexpr size_t kMostDimensions = 100;
// Largest number of pieces of typed contents; ordinary messages have one for each input.
constexpr size_t kMostRuns = 20000;
constexpr size_t kLargestMessage = INT32_MAX;

// Fields of InferParameter.
enum ParameterKind : uint32_t {
  kNoValue = 0,
  kBoolParameter = 1,
  kInt64Parameter = 2,
  kStringParameter = 3,
  kDoubleParameter = 4,
  kUint64Parameter = 5,
};

struct Parameter {
  Span key;
  uint32_t kind = kNoValue;
  uint64_t bits = 0;  // of every kind but string
  Span text;

  double number() const {
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
};

// One input. Its shape is Request::dimensions[first_dimension .. first_dimension + dimension_count).
struct Input {
  Span name;
  DataType type = kNoDataType;
  size_t first_dimension = 0;
  size_t dimension_count = 0;
  Contents contents;
  Span raw;  // if the input has no typed contents
};

struct Output {
  Span name;
  int64_t class_count = 0;
};

// A parsed ModelInferRequest, with views of its bytes. Reuse the object, so that its vectors keep their
// memory.
struct Request {
  Span model_name;
  Span id;
  int64_t model_version = -1;
  std::vector<Parameter> parameters;  // equal keys: the last one counts
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<Span> raw_contents;
  std::vector<int64_t> dimensions;  // of all inputs
  std::vector<Run> runs;            // of all inputs

  void clear() {
    model_name = id = Span();
    model_version = -1;
    parameters.clear();
    inputs.clear();
    outputs.clear();
    raw_contents.clear();
    dimensions.clear();
    runs.clear();
  }
};

class RequestReader {
 public:
  explicit RequestReader(Request& request) : request_(request) {}

  bool read(Span message) {
    request_.clear();
    fields_ = 0;
    if (message.size > kLargestMessage) return false;
    Cursor cursor(message);
    Span version;
    uint32_t tag;
    while (cursor.more()) {
      if (!next(cursor, tag) || !field(tag, cursor, version)) return false;
    }
    return read_version(version) && find_data();
  }

 private:
  bool field(uint32_t tag, Cursor& cursor, Span& version) {
    Span bytes;
    switch (tag) {
      case tag_of(1, kLength):
        return cursor.text(request_.model_name);
      case tag_of(2, kLength):
        return cursor.text(version);
      case tag_of(3, kLength):
        return cursor.text(request_.id);
      case tag_of(4, kLength):
        if (!cursor.bytes(bytes) || request_.parameters.size() == kMostEntries) return false;
        request_.parameters.emplace_back();
        return read_entry(bytes, request_.parameters.back());
      case tag_of(5, kLength):
        if (!cursor.bytes(bytes) || request_.inputs.size() == kMostEntries) return false;
        request_.inputs.emplace_back();
        return read_input(bytes, request_.inputs.back());
      case tag_of(6, kLength):
        if (!cursor.bytes(bytes) || request_.outputs.size() == kMostEntries) return false;
        request_.outputs.emplace_back();
        return read_output(bytes, request_.outputs.back());
      case tag_of(7, kLength):
        if (!cursor.bytes(bytes) || request_.raw_contents.size() == kMostEntries) return false;
        request_.raw_contents.push_back(bytes);
        return true;
      default:
        return cursor.skip(tag);
    }
  }

  // Read a version in its usual form: empty, or up to 18 digits without a leading zero. Else return false.
  bool read_version(Span text) {
    if (text.size == 0) return true;
    if (text.size > 18 || (text.data[0] == '0' && text.size > 1)) return false;
    int64_t number = 0;
    for (size_t i = 0; i < text.size; ++i) {
      if (text.data[i] < '0' || text.data[i] > '9') return false;
      number = 10 * number + (text.data[i] - '0');
    }
    request_.model_version = number;
    return true;
  }

  // Assign the raw contents to the inputs in their order. Return false if an input has none, or if there are
  // raw and typed contents.
  bool find_data() {
    const std::vector<Span>& raws = request_.raw_contents;
    size_t next = 0;
    for (Input& input : request_.inputs) {
      if (input.type == kNoDataType) return false;
      if (input.contents.present) {
        if (!raws.empty()) return false;
        if (input.contents.run_count != 0 && !takes(input.contents.field, input.type)) return false;
      } else if (next == raws.size()) {
        return false;
      } else {
        input.raw = raws[next++];
      }
    }
    return true;
  }

  // Read an entry of map<string, InferParameter>.
  bool read_entry(Span message, Parameter& parameter) {
    Cursor cursor(message);
    Span value;
    uint32_t tag;
    while (cursor.more()) {
      if (!next(cursor, tag)) return false;
      switch (tag) {
        case tag_of(1, kLength):
          if (!cursor.text(parameter.key)) return false;
          break;
        case tag_of(2, kLength):
          if (!cursor.bytes(value) || !read_value(value, parameter)) return false;
          break;
        default:
          if (!cursor.skip(tag)) return false;
      }
    }
    return true;
  }

  // Read an InferParameter: a oneof, whose last field wins.
  bool read_value(Span message, Parameter& parameter) {
    Cursor cursor(message);
    uint32_t tag;
    while (cursor.more()) {
      if (!next(cursor, tag)) return false;
      switch (tag) {
        case tag_of(kBoolParameter, kVarint):
        case tag_of(kInt64Parameter, kVarint):
        case tag_of(kUint64Parameter, kVarint):
          if (!cursor.varint(parameter.bits)) return false;
          break;
        case tag_of(kStringParameter, kLength):
          if (!cursor.text(parameter.text)) return false;
          break;
        case tag_of(kDoubleParameter, kFixed64):
          if (!cursor.fixed(parameter.bits)) return false;
          break;
        default:
          if (!cursor.skip(tag)) return false;
          continue;
      }
      parameter.kind = tag >> 3;
    }
    return true;
  }

  bool read_input(Span message, Input& input) {
    input.first_dimension = request_.dimensions.size();
    Cursor cursor(message);
    Span bytes;
    uint32_t tag;
    while (cursor.more()) {
      if (!next(cursor, tag)) return false;
      switch (tag) {
        case tag_of(1, kLength):
          if (!cursor.text(input.name)) return false;
          break;
        case tag_of(2, kLength):
          if (!cursor.bytes(bytes)) return false;
          input.type = data_type(bytes);
          if (input.type == kNoDataType && !is_utf8(bytes)) return false;
          break;
        case tag_of(3, kVarint):
          if (!read_dimension(cursor, input)) return false;
          break;
        case tag_of(3, kLength):
          if (!cursor.bytes(bytes) || !read_shape(bytes, input)) return false;
          break;
        case tag_of(4, kLength):
          if (!cursor.bytes(bytes) || !read_input_parameter(bytes)) return false;
          break;
        case tag_of(5, kLength):
          if (!cursor.bytes(bytes)) return false;
          if (!ContentsReader(input.contents, request_.runs, kMostRuns).read(bytes)) return false;
          break;
        default:
          if (!cursor.skip(tag)) return false;
      }
    }
    return true;
  }

  bool read_shape(Span packed, Input& input) {
    for (Cursor cursor(packed); cursor.more();) {
      if (!read_dimension(cursor, input)) return false;
    }
    return true;
  }

  bool read_dimension(Cursor& cursor, Input& input) {
    uint64_t size;
    if (!cursor.varint(size) || input.dimension_count == kMostDimensions) return false;
    request_.dimensions.push_back(static_cast<int64_t>(size));
    ++input.dimension_count;
    return true;
  }

  // Check a parameter of an input: false for shared memory, which protobuf's decoder reads; others are
  // ignored.
  bool read_input_parameter(Span message) {
    Parameter parameter;
    return read_entry(message, parameter) && !parameter.key.starts_with("shared_memory_");
  }

  bool read_output(Span message, Output& output) {
    Cursor cursor(message);
    Span bytes;
    uint32_t tag;
    while (cursor.more()) {
      if (!next(cursor, tag)) return false;
      switch (tag) {
        case tag_of(1, kLength):
          if (!cursor.text(output.name)) return false;
          break;
        case tag_of(2, kLength):
          if (!cursor.bytes(bytes) || !read_output_parameter(bytes, output)) return false;
          break;
        default:
          if (!cursor.skip(tag)) return false;
      }
    }
    return true;
  }

  bool read_output_parameter(Span message, Output& output) {
    Parameter parameter;
    if (!read_entry(message, parameter) || parameter.key.starts_with("shared_memory_")) return false;
    if (parameter.key.is("classification")) {
      output.class_count = static_cast<int64_t>(parameter.bits);
      if (parameter.kind != kInt64Parameter || output.class_count <= 0) return false;
    }
    return true;
  }

  // Read the tag of the next field. False also for too many fields: protobuf's decoder then raises the error.
  bool next(Cursor& cursor, uint32_t& tag) {
    fields_ += 1 + cursor.skipped_in_groups();
    return fields_ <= kMostParts && cursor.tag(tag);
  }

  Request& request_;
  size_t fields_ = 0;
};

// Return the slot of a name, 0 to count - 1, in a cache of `count` slots, a power of two. Equal names have
// equal slots.
inline size_t place_of(Span name, size_t count) {
  uint64_t first = 0, last = 0;
  const size_t n = name.size < 8 ? name.size : 8;
  std::memcpy(&first, name.data, n);
  std::memcpy(&last, name.data + name.size - n, n);
  const uint64_t mixed = (first ^ (last * 3) ^ name.size) * 0x9E3779B97F4A7C15u;
  return static_cast<size_t>(mixed >> 32) & (count - 1);
}

}  // namespace infer
