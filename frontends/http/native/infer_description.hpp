// A v2 inference request as a flat description: the result of infer_request.hpp.
//
// It has no Python types; infer_json.pxd declares these types for Cython.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "datatype.hpp"
#include "json_cursor.hpp"

namespace http_json {

constexpr size_t kKeptBytes = size_t{1} << 20;  // of scratch memory, from one request to the next

enum class Source : int { kNone, kData, kBinary, kShared };
enum class Kind : int { kText, kInteger, kReal, kTruth };

// A part of a shared-memory region. `byte_size` is 0 if the request does not set it.
struct Place {
  Text region;
  uint64_t offset = 0;
  uint64_t byte_size = 0;
};

// One input. `source` says where its elements are: in JSON (`data`), in binary after the JSON, or in shared
// memory.
//
// first_dimension   index of its first dimension in Request::dimensions; it has dimension_count
// size         size in bytes of `data` in wire form, or of the binary tensor
// memory       handle from Memory for the bytes of `data`; null for other sources and for empty tensors
// numbers      text of `data` with its brackets, if it has numbers; else empty
// shape        text of the shape with its brackets
// binary_size  digits of `binary_data_size`; empty for other sources
struct Input {
  Text name;
  DataType type = DataType::kNone;
  size_t first_dimension = 0;
  size_t dimension_count = 0;
  Source source = Source::kNone;
  uint64_t size = 0;
  void* memory = nullptr;
  Text numbers;
  Text shape;
  Text binary_size;
  Place place;
};

struct Output {
  Text name;
  bool binary = false;
  uint64_t class_count = 0;
  bool shared = false;
  Place place;
};

// A parameter of the request that the protocol does not define. Its value is `text`, `integer` or `real`.
struct Parameter {
  Text key;
  Kind kind = Kind::kText;
  Text text;
  int64_t integer = 0;  // also the value of a boolean
  double real = 0;
};

// A parsed request. Texts are views of the body or of `unescaped`: valid until the body is freed or `clear`
// is called.
struct Request {
  Text id;
  bool sequence_named = false;  // by sequence_name, else by sequence_id
  Text sequence_name;
  uint64_t sequence_id = 0;
  bool sequence_start = false;
  bool sequence_end = false;
  uint64_t priority = 0;
  uint64_t timeout_us = 0;
  bool binary_output = false;
  std::vector<Parameter> parameters;
  std::vector<Input> inputs;
  std::vector<int64_t> dimensions;
  std::vector<Output> outputs;
  std::deque<std::string> unescaped;
  std::vector<char> strings;  // elements of the current BYTES tensor

  void clear() {
    id = sequence_name = Text{};
    sequence_id = priority = timeout_us = 0;
    sequence_named = sequence_start = sequence_end = binary_output = false;
    parameters.clear();
    inputs.clear();
    dimensions.clear();
    outputs.clear();
    if (!unescaped.empty()) unescaped.clear();
    if (strings.capacity() > kKeptBytes) std::vector<char>().swap(strings);
  }
};

}  // namespace http_json
