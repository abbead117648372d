// InferenceResponse → ModelInferResponse, all but the bytes of its tensors.
//
// `raw_output_contents` is the last field, so these follow as they are: after the head, for each
// output a tag, a length and the tensor. On a stream the same message is a field of another one.
#pragma once

#include <string>

#include "wire.hpp"

namespace infer {

inline size_t varint_size(uint64_t value) {
  size_t size = 1;
  for (; value >= 0x80; value >>= 7) ++size;
  return size;
}

// Writes `value` to memory for ten bytes; the end of what was written.
inline char* put_varint(char* to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<char>(value | 0x80);
  *to++ = static_cast<char>(value);
  return to;
}

constexpr size_t kLongestPrefix = 11;  // a tag of one byte and a length
constexpr char kRawOutputContents = tag_of(6, kLength);
constexpr char kInferResponse = tag_of(2, kLength);  // of ModelStreamInferResponse

// Tag and length of a field, for memory of kLongestPrefix bytes; the end of what was written.
inline char* put_prefix(char* to, char tag, uint64_t size) {
  *to = tag;
  return put_varint(to + 1, size);
}

class ResponseWriter {
 public:
  ResponseWriter() { bytes_.reserve(256); }

  const std::string& bytes() const { return bytes_; }

  // Fields 1 to 3: model_name, model_version, id. Text that is empty is not written.
  void text(uint32_t field, Span value) {
    if (value.size != 0) span(static_cast<char>(tag_of(field, kLength)), value);
  }

  void version(int64_t value) {
    const std::string digits = std::to_string(value);
    text(2, {digits.data(), digits.size()});
  }

  // parameters: entries of a map, each a key and an InferParameter.
  void parameter_bool(Span key, bool value) {
    entry(key, 2);
    varint_field(tag_of(1, kVarint), value);
  }

  void parameter_int64(Span key, int64_t value) {
    entry(key, 1 + varint_size(static_cast<uint64_t>(value)));
    varint_field(tag_of(2, kVarint), static_cast<uint64_t>(value));
  }

  void parameter_string(Span key, Span value) {
    entry(key, 1 + varint_size(value.size) + value.size);
    span(tag_of(3, kLength), value);
  }

  void parameter_double(Span key, double value) {
    entry(key, 9);
    bytes_.push_back(tag_of(4, kFixed64));
    char eight[8];
    std::memcpy(eight, &value, 8);
    bytes_.append(eight, 8);
  }

  // One of `outputs`: name, datatype and shape.
  void output(Span name, Span datatype, const int64_t* shape, size_t dimensions) {
    size_t packed = 0;
    for (size_t i = 0; i < dimensions; ++i) packed += varint_size(static_cast<uint64_t>(shape[i]));
    size_t size = field_size(name.size) + field_size(datatype.size) + field_size(packed);
    prefix(tag_of(5, kLength), size);
    if (name.size != 0) span(tag_of(1, kLength), name);
    if (datatype.size != 0) span(tag_of(2, kLength), datatype);
    if (packed == 0) return;
    prefix(tag_of(3, kLength), packed);
    for (size_t i = 0; i < dimensions; ++i) varint(static_cast<uint64_t>(shape[i]));
  }

 private:
  static size_t field_size(size_t size) { return size == 0 ? 0 : 1 + varint_size(size) + size; }

  void varint(uint64_t value) {
    char ten[10];
    bytes_.append(ten, static_cast<size_t>(put_varint(ten, value) - ten));
  }

  void varint_field(char tag, uint64_t value) {
    bytes_.push_back(tag);
    varint(value);
  }

  void prefix(char tag, size_t size) { varint_field(tag, size); }

  void span(char tag, Span value) {
    prefix(tag, value.size);
    bytes_.append(value.data, value.size);
  }

  // The entry up to its value, which follows with `value_size` bytes.
  void entry(Span key, size_t value_size) {
    const size_t key_size = 1 + varint_size(key.size) + key.size;
    prefix(tag_of(4, kLength), key_size + 1 + varint_size(value_size) + value_size);
    span(tag_of(1, kLength), key);
    prefix(tag_of(2, kLength), value_size);
  }

  std::string bytes_;
};

}  // namespace infer
