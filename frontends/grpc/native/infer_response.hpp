// InferenceResponse → ModelInferResponse, except the bytes of its tensors.
//
// `raw_output_contents` is the last field, so that these bytes follow unchanged: after the head, each output
// has a tag, a length and the tensor. On a stream this message is a field of another one.
#pragma once

#include <charconv>
#include <cstdlib>
#include <new>

#include "wire.hpp"

namespace infer {

inline size_t varint_size(uint64_t value) {
  size_t size = 1;
  for (; value >= 0x80; value >>= 7) ++size;
  return size;
}

// Write `value` as a varint to `to`, memory for ten bytes; return the position after it.
inline char* put_varint(char* to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<char>((value & 0x7F) | 0x80);
  *to++ = static_cast<char>(value);
  return to;
}

constexpr size_t kLongestPrefix = 11;  // a tag of one byte and a length
constexpr char kRawOutputContents = tag_of(6, kLength);
constexpr char kInferResponse = tag_of(2, kLength);  // of ModelStreamInferResponse

// Write tag and length of a field to `to`, memory for kLongestPrefix bytes; return the position after them.
inline char* put_prefix(char* to, char tag, uint64_t size) {
  *to = tag;
  return put_varint(to + 1, size);
}

// A growing buffer, which allocates nothing for up to 512 bytes.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (data_ != few_) std::free(data_);
  }

  const char* data() const { return data_; }
  size_t size() const { return size_; }

  // Return memory for `most` more bytes, valid until the next call. The caller then passes the end of what it
  // has written to `end`.
  char* room(size_t most) {
    if (most > capacity_ - size_) grow(most);
    return data_ + size_;
  }
  void end(const char* place) { size_ = static_cast<size_t>(place - data_); }

 private:
  void grow(size_t most) {
    const size_t capacity = 2 * capacity_ + most;
    char* const more =
        static_cast<char*>(std::realloc(data_ == few_ ? nullptr : data_, capacity));
    if (more == nullptr) throw std::bad_alloc();
    if (data_ == few_) std::memcpy(more, few_, size_);
    data_ = more;
    capacity_ = capacity;
  }

  char few_[512];
  char* data_ = few_;
  size_t size_ = 0;
  size_t capacity_ = sizeof few_;
};

class ResponseWriter {
 public:
  const char* data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }

  // Write model_name, model_version or id: field 1, 2 or 3. Empty text is omitted.
  void text(uint32_t field, Span value) {
    if (value.size != 0) span(static_cast<char>(tag_of(field, kLength)), value);
  }

  void version(int64_t value) {
    char digits[20];
    const char* const end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    text(2, {digits, static_cast<size_t>(end - digits)});
  }

  // Write one entry of `parameters`: a key and an InferParameter.
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
    char* const to = bytes_.room(9);
    *to = tag_of(4, kFixed64);
    std::memcpy(to + 1, &value, 8);
    bytes_.end(to + 9);
  }

  // Write one entry of `outputs`: name, datatype and shape.
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
    bytes_.end(put_varint(bytes_.room(10), value));
  }

  void varint_field(char tag, uint64_t value) {
    bytes_.end(put_prefix(bytes_.room(kLongestPrefix), tag, value));
  }

  void prefix(char tag, size_t size) { varint_field(tag, size); }

  void span(char tag, Span value) {
    char* const to = put_prefix(bytes_.room(kLongestPrefix + value.size), tag, value.size);
    std::memcpy(to, value.data, value.size);
    bytes_.end(to + value.size);
  }

  // Write a map entry up to its value, which the caller writes next with `value_size` bytes.
  void entry(Span key, size_t value_size) {
    const size_t key_size = 1 + varint_size(key.size) + key.size;
    prefix(tag_of(4, kLength), key_size + 1 + varint_size(value_size) + value_size);
    span(tag_of(1, kLength), key);
    prefix(tag_of(2, kLength), value_size);
  }

  Buffer bytes_;
};

}  // namespace infer
