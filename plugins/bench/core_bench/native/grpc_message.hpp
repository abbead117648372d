// GrpcFrames: the messages of a gRPC stream. StreamResponse: what a ModelStreamInferResponse says.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace bench {

class GrpcFrames {
 public:
  static constexpr size_t kHead = 5;

  void reset() { data_.clear(); left_ = 0; head_.clear(); }

  // Calls use(message) for each complete message. With `keep` false, messages are counted, and `use` gets "".
  template <class Use>
  void feed(std::string_view piece, bool keep, Use use) {
    while (!piece.empty()) {
      if (head_.size() < kHead) {
        const size_t more = std::min(kHead - head_.size(), piece.size());
        head_.append(piece.substr(0, more));
        piece.remove_prefix(more);
        if (head_.size() < kHead) return;
        left_ = 0;
        for (size_t i = 1; i < kHead; ++i) left_ = left_ << 8 | uint8_t(head_[i]);
      }
      const size_t more = std::min(left_, piece.size());
      if (keep) data_.append(piece.substr(0, more));
      piece.remove_prefix(more);
      left_ -= more;
      if (!left_) {
        head_.clear();
        use(std::string_view(data_));
        data_.clear();
      }
    }
    // A message without content ends with its head.
    if (head_.size() == kHead && !left_) {
      head_.clear();
      use(std::string_view());
    }
  }

 private:
  std::string head_, data_;
  size_t left_ = 0;
};

// Reads the fields of a message of protobuf, one after the other.
class MessageReader {
 public:
  explicit MessageReader(std::string_view data) : data_(data) {}

  // Moves to the next field; false at the end, or if the message is broken.
  bool next() {
    uint64_t key;
    if (data_.empty() || !varint(key)) return false;
    number = uint32_t(key >> 3);
    switch (key & 7) {
      case 0:
        return varint(value);
      case 1:
        return skip(8);
      case 2: {
        uint64_t size;
        if (!varint(size) || size > data_.size()) return false;
        bytes = data_.substr(0, size);
        data_.remove_prefix(size);
        return true;
      }
      case 5:
        return skip(4);
      default:
        return false;
    }
  }

  uint32_t number = 0;
  uint64_t value = 0;
  std::string_view bytes;

 private:
  bool varint(uint64_t& found) {
    found = 0;
    for (int shift = 0; shift < 64 && !data_.empty(); shift += 7) {
      const uint8_t byte = uint8_t(data_.front());
      data_.remove_prefix(1);
      found |= uint64_t(byte & 0x7f) << shift;
      if (!(byte & 0x80)) return true;
    }
    return false;
  }

  bool skip(size_t size) {
    if (size > data_.size()) return false;
    data_.remove_prefix(size);
    return true;
  }

  std::string_view data_;
};

struct StreamResponse {
  std::string error;
  bool final = false;  // parameter triton_final_response
  bool empty = true;   // without outputs

  explicit StreamResponse(std::string_view message) {
    for (MessageReader outer(message); outer.next();) {
      if (outer.number == 1) error.assign(outer.bytes);
      if (outer.number != 2) continue;
      for (MessageReader inner(outer.bytes); inner.next();) {
        if (inner.number == 5) empty = false;
        if (inner.number == 4) read_parameter(inner.bytes);
      }
    }
  }

 private:
  void read_parameter(std::string_view entry) {
    std::string_view key, parameter;
    for (MessageReader each(entry); each.next();) {
      (each.number == 1 ? key : parameter) = each.bytes;
    }
    if (key != "triton_final_response") return;
    for (MessageReader each(parameter); each.next();) {
      if (each.number == 1) final = each.value != 0;
    }
  }
};

}  // namespace bench
