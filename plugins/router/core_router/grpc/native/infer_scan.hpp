// scan: what a router needs of a ModelInferRequest. Tensors are skipped by their sizes.
//
// The messages ModelReadyRequest, ModelMetadataRequest, … have name and version in the same fields.
#pragma once

#include <cstdint>
#include <string_view>

namespace core_router {

// Reads the fields of a message of protobuf, one after the other.
class FieldsOfMessage {
 public:
  explicit FieldsOfMessage(std::string_view data) : left_(data) {}

  // Move to the next field. False at the end, or if the rest is broken or incomplete.
  bool next() {
    uint64_t key;
    if (left_.empty() || !varint(key)) return false;
    number = static_cast<uint32_t>(key >> 3);
    type = static_cast<int>(key & 7);
    bytes = {};
    value = 0;
    switch (type) {
      case 0:
        return varint(value);
      case 1:
        return skip(8);
      case 2: {
        uint64_t size;
        if (!varint(size) || size > left_.size()) return false;
        bytes = left_.substr(0, size);
        left_.remove_prefix(size);
        return true;
      }
      case 5:
        return skip(4);
      default:
        return false;
    }
  }

  uint32_t number = 0;
  int type = 0;
  uint64_t value = 0;
  std::string_view bytes;

 private:
  bool varint(uint64_t& found) {
    found = 0;
    for (int shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(left_.front());
      left_.remove_prefix(1);
      found |= uint64_t(byte & 0x7f) << shift;
      if (!(byte & 0x80)) return true;
    }
    return false;
  }

  bool skip(size_t size) {
    if (size > left_.size()) return false;
    left_.remove_prefix(size);
    return true;
  }

  std::string_view left_;
};

struct Scanned {
  std::string_view model, version, id;
  bool has_sequence = false;   // whether it names one, neither 0 nor ""
  bool is_text = false;        // whether the sequence is `text`, else `number`
  std::string_view text;
  uint64_t number = 0;
  bool is_signed = false;
  bool starts = false, ends = false;
};

inline void scan_parameter(std::string_view entry, Scanned& found) {
  std::string_view key, parameter;
  for (FieldsOfMessage each(entry); each.next();) {
    if (each.number == 1) key = each.bytes;
    if (each.number == 2) parameter = each.bytes;
  }
  if (key.substr(0, 9) != "sequence_") return;
  for (FieldsOfMessage each(parameter); each.next();) {
    if (key == "sequence_start") found.starts = each.value != 0;
    if (key == "sequence_end") found.ends = each.value != 0;
    if (key != "sequence_id") continue;
    found.is_text = each.number == 3;
    found.is_signed = each.number == 2;
    found.text = each.bytes;
    found.number = each.value;
    found.has_sequence = found.is_text ? !found.text.empty() : found.number != 0;
  }
}

// Return what a message says, or the begin of one that is not complete.
inline Scanned scan(std::string_view message) {
  Scanned found;
  for (FieldsOfMessage each(message); each.next();) {
    if (each.type != 2) continue;
    if (each.number == 1) found.model = each.bytes;
    if (each.number == 2) found.version = each.bytes;
    if (each.number == 3) found.id = each.bytes;
    if (each.number == 4) scan_parameter(each.bytes, found);
  }
  return found;
}

struct ScannedResponse {
  bool failed = false;   // whether it has an error message
  bool goes_on = false;  // whether it says that it is not the last response to its request
  std::string_view model, id;
};

// Return whether a parameter of a response says that more responses to the same request follow.
inline bool says_more(std::string_view entry) {
  std::string_view key, parameter;
  for (FieldsOfMessage each(entry); each.next();) {
    if (each.number == 1) key = each.bytes;
    if (each.number == 2) parameter = each.bytes;
  }
  if (key != "triton_final_response") return false;
  FieldsOfMessage value(parameter);
  return value.next() && value.number == 1 && value.type == 0 && value.value == 0;
}

// Return what a ModelStreamInferResponse says.
inline ScannedResponse scan_response(std::string_view message) {
  ScannedResponse found;
  for (FieldsOfMessage outer(message); outer.next();) {
    if (outer.number == 1) found.failed = !outer.bytes.empty();
    if (outer.number != 2) continue;
    for (FieldsOfMessage inner(outer.bytes); inner.next();) {
      if (inner.number == 1) found.model = inner.bytes;
      if (inner.number == 3) found.id = inner.bytes;
      if (inner.number == 4) found.goes_on = found.goes_on || says_more(inner.bytes);
      if (inner.number > 4) break;
    }
  }
  return found;
}

}  // namespace core_router
