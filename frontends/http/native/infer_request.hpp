// The JSON of a v2 inference request → a flat description of it.
//
// bytes ─► [RequestReader] ─► Request ─► infer_request.pyx.  It accepts only valid and common requests: a
// repeated member, a wrong type, a shape that does not match its data, and JSON deeper than kMostDepth end
// with false. The parser in Python then accepts the request or raises the error, so that each rule about
// errors exists once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "infer_description.hpp"
#include "json_cursor.hpp"
#include "tensor_data.hpp"

namespace http_json {

constexpr size_t kMostEntries = 10000;  // as in core/v2.py
constexpr size_t kMostDimensions = 100;
constexpr uint64_t kLargest = (uint64_t{1} << 63) - 1;  // of an element count

using Take = char* (*)(void* context, size_t size, void** memory);

// Allocates memory for the elements of JSON tensors. `take` gets `context`, allocates `size` bytes, writes
// their handle to `memory` and returns the first byte; null on failure. The creator of the reader owns the
// bytes.
struct Memory {
  Take take;
  void* context;
};

class RequestReader {
 public:
  // most_bytes   largest tensor in JSON, in bytes of its wire form
  RequestReader(const char* json, size_t size, uint64_t most_bytes, Memory memory, Request& request)
      : cursor_(json, json + size), most_bytes_(most_bytes), memory_(memory), request_(request) {}

  // Return whether the whole JSON is accepted; then `request`, which must be clear before, is complete.
  bool read() {
    Once once;
    bool inputs = false;
    const bool form = each_member([&] {
      if (equals(key_, "parameters")) return once(0) && read_parameters();
      switch (word_key(key_)) {
        case word_key("id"): return once(1) && take_text(request_.id);
        case word_key("inputs"): return inputs = once(2) && read_inputs();
        case word_key("outputs"): return once(3) && read_outputs();
        default: return cursor_.skip_value(1);
      }
    });
    return form && inputs && cursor_.peek() == '\0' && cursor_.at() == cursor_.end();
  }

 private:
  // The members of an object so far. A call returns true for the first occurrence of a member.
  struct Once {
    unsigned seen = 0;
    bool operator()(int member) {
      const unsigned bit = 1u << member;
      const bool first = !(seen & bit);
      seen |= bit;
      return first;
    }
    bool has(int member) const { return seen >> member & 1; }
  };

  bool take_text(Text& text) { return cursor_.take_text(text, request_.unescaped); }

  template <class Member>
  bool each_member(Member member) {
    return cursor_.each_member(key_, request_.unescaped, member);
  }

  // Parameters of the request.

  bool read_parameters() {
    Once once;
    size_t count = 0;
    return each_member([&] {
      if (++count > kMostEntries || key_.starts_with("triton_", 7)) return false;
      if (key_.starts_with("sequence_", 9)) {
        if (equals(key_, "sequence_id")) return once(0) && read_sequence_id();
        if (equals(key_, "sequence_start")) return once(1) && cursor_.take_truth(request_.sequence_start);
        if (equals(key_, "sequence_end")) return once(2) && cursor_.take_truth(request_.sequence_end);
      }
      if (equals(key_, "priority")) return once(3) && cursor_.take_integer(request_.priority);
      if (equals(key_, "timeout")) return once(4) && cursor_.take_integer(request_.timeout_us);
      if (equals(key_, "binary_data_output")) return once(5) && cursor_.take_truth(request_.binary_output);
      return !is_content_type() && read_own();
    });
  }

  bool read_sequence_id() {
    request_.sequence_named = cursor_.peek() == '"';
    return request_.sequence_named ? take_text(request_.sequence_name)
                                   : cursor_.take_integer(request_.sequence_id);
  }

  // Requests with a content type are refused here: Python converts their tensors.
  bool is_content_type() const { return equals(key_, "content_type"); }

  bool read_own() {
    Parameter own;
    own.key = key_;
    const char first = cursor_.peek();
    if (first == '"') {
      own.kind = Kind::kText;
      if (!take_text(own.text)) return false;
    } else if (first == 't' || first == 'f') {
      own.kind = Kind::kTruth;
      bool truth;
      if (!cursor_.take_truth(truth)) return false;
      own.integer = truth;
    } else {
      const char* begin = cursor_.at();
      own.kind = Kind::kInteger;
      if (!cursor_.take_integer(own.integer)) {
        // Not an integer, or an integer of more than 64 bits, which is a float too.
        cursor_.move_to(begin);
        own.kind = Kind::kReal;
        if (!cursor_.take_real(own.real)) return false;
      }
    }
    request_.parameters.push_back(own);
    return true;
  }

  // Inputs.

  enum InputMember { kName, kDataType, kShape, kData, kOptions };

  bool read_inputs() {
    return cursor_.each_element([this] {
      if (request_.inputs.size() == kMostEntries) return false;
      request_.inputs.emplace_back();
      return read_input(request_.inputs.back());
    });
  }

  bool read_input(Input& input) {
    Once once;
    const char* data = nullptr;  // its position, if it precedes its shape or datatype
    uint64_t count = 0;
    const bool form = each_member([&] {
      if (equals(key_, "parameters")) return once(kOptions) && read_input_options(input);
      switch (word_key(key_)) {
        case word_key("name"): return once(kName) && take_text(input.name);
        case word_key("datatype"): return once(kDataType) && read_datatype(input);
        case word_key("shape"): return once(kShape) && read_shape(input, count);
        case word_key("data"): {
          if (!once(kData) || !set_source(input, Source::kData)) return false;
          if (once.has(kDataType) && once.has(kShape)) return read_data(input, count);
          cursor_.peek();
          data = cursor_.at();
          return cursor_.skip_value(2);
        }
        default: return cursor_.skip_value(2);
      }
    });
    if (!form || !once.has(kName) || !once.has(kDataType) || !once.has(kShape)) return false;
    if (data != nullptr) {
      const char* behind = cursor_.at();
      cursor_.move_to(data);
      if (!read_data(input, count)) return false;
      cursor_.move_to(behind);
    }
    return input.source != Source::kNone;
  }

  // Return the text from `begin` to the current position.
  Text text_from(const char* begin) const {
    return {begin, static_cast<size_t>(cursor_.at() - begin)};
  }

  static bool set_source(Input& input, Source source) {
    if (input.source != Source::kNone && input.source != source) return false;
    input.source = source;
    return true;
  }

  bool read_datatype(Input& input) {
    Text name;
    if (!take_text(name)) return false;
    input.type = datatype_of(name);
    return input.type != DataType::kNone;
  }

  bool read_shape(Input& input, uint64_t& count) {
    input.first_dimension = request_.dimensions.size();
    cursor_.skip_space();
    const char* begin = cursor_.at();
    const bool form = cursor_.each_element([&] {
      int64_t size;
      if (!cursor_.take_integer(size) || size < 0) return false;
      request_.dimensions.push_back(size);
      return ++input.dimension_count <= kMostDimensions;
    });
    input.shape = text_from(begin);
    count = element_count(input);
    return form;
  }

  // Return the number of elements; kLargest + 1 if it exceeds kLargest. Then `data` is refused, and `admit`
  // checks the size of a binary tensor. A dimension of 0 makes any shape empty.
  uint64_t element_count(const Input& input) const {
    const int64_t* dims = request_.dimensions.data() + input.first_dimension;
    bool fits = true;
    uint64_t count = 1;
    for (size_t i = 0; i < input.dimension_count; ++i) {
      const uint64_t size = static_cast<uint64_t>(dims[i]);
      if (size == 0) return 0;
      fits = fits && count <= kLargest / size;
      count *= size;
    }
    return fits ? count : kLargest + 1;
  }

  bool read_data(Input& input, uint64_t count) {
    if (input.type == DataType::kFp16 || input.type == DataType::kBf16) return false;
    if (count == 0) return cursor_.skip_value(2);  // Triton ignores it, too
    const size_t smallest = input.type == DataType::kBytes ? 4 : element_size(input.type);
    // Each element has at least one byte and a comma in the text: a shape alone cannot allocate memory.
    const uint64_t left = static_cast<uint64_t>(cursor_.end() - cursor_.at());
    if (count > left || count > most_bytes_ / smallest) return false;
    if (input.type == DataType::kBytes) return read_text_data(input, count);
    input.size = count * smallest;
    char* to = memory_.take(memory_.context, input.size, &input.memory);
    cursor_.skip_space();
    const char* begin = cursor_.at();
    if (to == nullptr || !read_numbers(cursor_, input.type, count, to)) return false;
    input.numbers = text_from(begin);
    return true;
  }

  bool read_text_data(Input& input, uint64_t count) {
    std::vector<char>& strings = request_.strings;
    if (!read_strings(cursor_, count, most_bytes_, strings)) return false;
    input.size = strings.size();
    char* to = memory_.take(memory_.context, input.size, &input.memory);
    if (to != nullptr) std::memcpy(to, strings.data(), input.size);
    return to != nullptr;
  }

  bool read_input_options(Input& input) {
    if (cursor_.peek() != '{') return cursor_.skip_value(2);
    Once once;
    return each_member([&] {
      if (equals(key_, "binary_data_size")) {
        cursor_.skip_space();
        const char* begin = cursor_.at();
        const bool right =
            once(0) && set_source(input, Source::kBinary) && cursor_.take_integer(input.size);
        input.binary_size = text_from(begin);
        return right;
      }
      if (key_.starts_with("shared_memory_", 14)) {
        if (equals(key_, "shared_memory_region") && !set_source(input, Source::kShared)) return false;
        return read_place(once, input.place);
      }
      return !is_content_type() && cursor_.skip_value(3);
    });
  }

  // Read a member of input or output parameters that begins with "shared_memory_".
  bool read_place(Once& once, Place& place) {
    if (equals(key_, "shared_memory_region")) return once(8) && take_text(place.region);
    if (equals(key_, "shared_memory_offset")) return once(9) && cursor_.take_integer(place.offset);
    if (equals(key_, "shared_memory_byte_size")) return once(10) && cursor_.take_integer(place.byte_size);
    return cursor_.skip_value(3);
  }

  // Outputs.

  bool read_outputs() {
    return cursor_.each_element([this] {
      if (request_.outputs.size() == kMostEntries) return false;
      request_.outputs.emplace_back();
      return read_output(request_.outputs.back());
    });
  }

  bool read_output(Output& output) {
    Once once;
    const bool form = each_member([&] {
      if (equals(key_, "parameters")) return once(kOptions) && read_output_options(output);
      if (equals(key_, "name")) return once(kName) && take_text(output.name);
      return cursor_.skip_value(2);
    });
    const bool both = output.shared && (output.binary || output.class_count != 0);
    return form && once.has(kName) && !both;
  }

  bool read_output_options(Output& output) {
    if (cursor_.peek() != '{') return cursor_.skip_value(2);
    Once once;
    return each_member([&] {
      if (equals(key_, "binary_data")) return once(0) && cursor_.take_truth(output.binary);
      if (equals(key_, "classification")) return once(1) && cursor_.take_integer(output.class_count);
      if (key_.starts_with("shared_memory_", 14)) {
        output.shared = output.shared || equals(key_, "shared_memory_region");
        return read_place(once, output.place);
      }
      return !is_content_type() && cursor_.skip_value(3);
    });
  }

  Cursor cursor_;
  const uint64_t most_bytes_;
  const Memory memory_;
  Request& request_;
  Text key_;
};

}  // namespace http_json
