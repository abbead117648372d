// Counts the objects that protobuf would create for a message, from its bytes.
//
//   descriptors ─► Schema;  bytes ─► [EntryCounter] ─► within the limits, or the first exceeded limit
//
// A field of two bytes becomes an object of about a hundred bytes. The count needs no memory, and ends at the
// first exceeded limit.
#pragma once

#include <vector>

#include "wire.hpp"

namespace infer {

enum class FieldKind : uint8_t {
  kUnknown,  // protobuf keeps the bytes of such fields
  kNumber,
  kText,  // also bytes
  kMessage,
};

struct EntryField {
  FieldKind kind = FieldKind::kUnknown;
  bool repeated = false;
  bool element = false;  // of a tensor, which may have very many
  uint32_t width = 0;    // of a number in a packed field; 0 for varints
  size_t type = 0;       // index of the message
};

// The fields of a message type and of its nested types: types by index, fields by number.
class Schema {
 public:
  static constexpr size_t kMostFields = 32;  // all field numbers are smaller

  size_t add_type() {
    types_.emplace_back(kMostFields);
    return types_.size() - 1;
  }
  void set(size_t type, size_t number, EntryField field) { types_[type][number] = field; }
  const EntryField* field(size_t type, size_t number) const {
    return number < kMostFields ? &types_[type][number] : nullptr;
  }

 private:
  std::vector<std::vector<EntryField>> types_;
};

struct EntryBounds {
  size_t each;      // entries of one repeated field of one message
  size_t parts;     // messages, map entries, texts and unknown fields of all
  size_t elements;  // elements of tensors
};

enum class Entries { kWithin, kMalformed, kTooManyOfField, kTooManyParts, kTooManyElements };

// Counts the entries of one message, against the limits of EntryBounds; used once. After kTooManyOfField,
// `type` and `number` identify the field.
class EntryCounter {
 public:
  EntryCounter(const Schema& schema, const EntryBounds& bounds) : schema_(schema), bounds_(bounds) {}

  size_t type = 0, number = 0;

  Entries count(Span message, size_t root) { return walk(message, root, 0); }

 private:
  static constexpr int kDeepest = 100;  // protobuf's limit of nesting

  Entries walk(Span message, size_t root, int depth) {
    if (depth == kDeepest) return Entries::kMalformed;
    size_t counts[Schema::kMostFields] = {};
    uint32_t tag;
    for (Cursor cursor(message); cursor.more();) {
      if (!cursor.tag(tag)) return Entries::kMalformed;
      const EntryField* field = schema_.field(root, tag >> 3);
      size_t more = 1;
      Span bytes;
      const bool known = field != nullptr && field->kind != FieldKind::kUnknown;
      if (!known || (tag & 7) != kLength) {
        if (!cursor.skip(tag)) return Entries::kMalformed;
        parts_ += cursor.skipped_in_groups();
      } else {
        if (!cursor.bytes(bytes)) return Entries::kMalformed;
        if (field->kind == FieldKind::kNumber) more = numbers(bytes, field->width);
      }
      if (known && field->element) {
        elements_ += more;
        if (elements_ > bounds_.elements) return Entries::kTooManyElements;
        continue;
      }
      if (known && field->repeated && (counts[tag >> 3] += more) > bounds_.each) {
        type = root;
        number = tag >> 3;
        return Entries::kTooManyOfField;
      }
      if (known && field->kind == FieldKind::kNumber) continue;
      if (++parts_ > bounds_.parts) return Entries::kTooManyParts;
      if (known && field->kind == FieldKind::kMessage && (tag & 7) == kLength) {
        const Entries found = walk(bytes, field->type, depth + 1);
        if (found != Entries::kWithin) return found;
      }
    }
    return Entries::kWithin;
  }

  // Count the numbers in a packed field. The last byte of each varint, and only this one, has no high bit.
  static size_t numbers(Span packed, uint32_t width) {
    if (width != 0) return packed.size / width;
    size_t count = 0;
    for (size_t i = 0; i < packed.size; ++i) count += static_cast<uint8_t>(packed.data[i]) < 0x80;
    return count;
  }

  const Schema& schema_;
  const EntryBounds bounds_;
  size_t parts_ = 0, elements_ = 0;
};

}  // namespace infer
