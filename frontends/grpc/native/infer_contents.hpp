// InferTensorContents: typed elements on the wire → bytes of a tensor.
//
// The elements of a tensor are in one repeated field, which may consist of any number of pieces, packed or
// not. The reader records the pieces (runs) and counts the elements; `fill` then writes the tensor into
// memory of the caller.
#pragma once

#include <vector>

#include "wire.hpp"

namespace infer {

// The datatypes of the v2 protocol: indexes in core.dtypes.ALL.
enum DataType : int {
  kNoDataType = -1,
  kBool,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFp16,
  kFp32,
  kFp64,
  kBytes,
  kBf16,
};

inline DataType data_type(Span name) {
  if (name.size < 4 || name.size > 6) return kNoDataType;
  switch (name.data[0]) {
    case 'F':
      return name.is("FP32") ? kFp32 : name.is("FP16") ? kFp16 : name.is("FP64") ? kFp64 : kNoDataType;
    case 'I':
      return name.is("INT64")   ? kInt64
             : name.is("INT32") ? kInt32
             : name.is("INT8")  ? kInt8
             : name.is("INT16") ? kInt16
                                : kNoDataType;
    case 'U':
      return name.is("UINT8")    ? kUint8
             : name.is("UINT16") ? kUint16
             : name.is("UINT32") ? kUint32
             : name.is("UINT64") ? kUint64
                                 : kNoDataType;
    case 'B':
      return name.is("BYTES") ? kBytes : name.is("BOOL") ? kBool : name.is("BF16") ? kBf16 : kNoDataType;
    default:
      return kNoDataType;
  }
}

// Fields of InferTensorContents.
enum ContentsField : uint32_t {
  kNoContents = 0,
  kBoolContents = 1,
  kIntContents = 2,
  kInt64Contents = 3,
  kUintContents = 4,
  kUint64Contents = 5,
  kFp32Contents = 6,
  kFp64Contents = 7,
  kBytesContents = 8,
};

// Whether `field` of InferTensorContents may have elements of a datatype; never for FP16 and BF16.
inline bool takes(uint32_t field, DataType type) {
  switch (type) {
    case kBool:
      return field == kBoolContents;
    case kInt8:
    case kInt16:
    case kInt32:
      return field == kIntContents;
    case kInt64:
      return field == kInt64Contents;
    case kUint8:
    case kUint16:
    case kUint32:
      return field == kUintContents;
    case kUint64:
      return field == kUint64Contents;
    case kFp32:
      return field == kFp32Contents;
    case kFp64:
      return field == kFp64Contents;
    case kBytes:
      return field == kBytesContents;
    default:
      return false;
  }
}

// Return the size in bytes of an element of a datatype other than BYTES, FP16 and BF16.
inline size_t width_of(DataType type) {
  switch (type) {
    case kBool:
    case kInt8:
    case kUint8:
      return 1;
    case kInt16:
    case kUint16:
      return 2;
    case kInt32:
    case kUint32:
    case kFp32:
      return 4;
    default:
      return 8;
  }
}

// One piece of a repeated field: the content of a packed field, or consecutive fields with one element each.
struct Run {
  Span bytes;
  bool packed;
};

// The elements of one input. Its runs are runs[first_run .. first_run + run_count) of the request.
struct Contents {
  bool present = false;
  uint32_t field = kNoContents;
  size_t first_run = 0;
  size_t run_count = 0;
  size_t element_count = 0;
  size_t byte_count = 0;  // of all elements of BYTES, without their lengths

  size_t size_as(DataType type) const {
    return field == kBytesContents ? byte_count + 4 * element_count : element_count * width_of(type);
  }
};

// Reads InferTensorContents messages of one input into `contents`, merged, and appends their pieces to
// `runs`.
class ContentsReader {
 public:
  ContentsReader(Contents& contents, std::vector<Run>& runs, size_t most_runs)
      : contents_(contents), runs_(runs), most_runs_(most_runs) {}

  // Read one message. Return false for a malformed one, for too many pieces, and for elements in several
  // fields.
  bool read(Span message) {
    contents_.present = true;
    Cursor cursor(message);
    uint32_t tag;
    while (cursor.more()) {
      const char* const start = cursor.place();
      if (!cursor.tag(tag)) return false;
      if (!known(tag)) {
        if (!cursor.skip(tag)) return false;
      } else if (packed(tag)) {
        Span bytes;
        if (!cursor.bytes(bytes) || !add_packed(tag >> 3, bytes)) return false;
      } else if (!element(tag >> 3, cursor) || !add_single(tag >> 3, start, cursor.place())) {
        return false;
      }
    }
    return true;
  }

 private:
  static WireType element_type(uint32_t field) {
    return field == kFp32Contents    ? kFixed32
           : field == kFp64Contents  ? kFixed64
           : field == kBytesContents ? kLength
                                     : kVarint;
  }

  // Whether a tag is of a field with elements. For protobuf, one with the wrong wire type is unknown.
  static bool known(uint32_t tag) {
    const uint32_t field = tag >> 3;
    return field <= kBytesContents && ((tag & 7) == element_type(field) || (tag & 7) == kLength);
  }

  static bool packed(uint32_t tag) { return (tag & 7) == kLength && tag >> 3 != kBytesContents; }

  bool element(uint32_t field, Cursor& cursor) {
    uint64_t number;
    uint32_t half;
    Span bytes;
    switch (element_type(field)) {
      case kFixed32:
        return cursor.fixed(half);
      case kFixed64:
        return cursor.fixed(number);
      case kLength:
        if (!cursor.bytes(bytes)) return false;
        contents_.byte_count += bytes.size;
        return true;
      default:
        return cursor.varint(number);
    }
  }

  bool add_packed(uint32_t field, Span bytes) {
    size_t count = 0;
    const WireType type = element_type(field);
    if (type == kVarint) {
      uint64_t number;
      for (Cursor cursor(bytes); cursor.more(); ++count) {
        if (!cursor.varint(number)) return false;
      }
    } else {
      const size_t width = type == kFixed32 ? 4 : 8;
      if (bytes.size % width != 0) return false;
      count = bytes.size / width;
    }
    if (count == 0) return true;  // ignore a field without elements
    return add(field, count, {bytes, true});
  }

  bool add_single(uint32_t field, const char* start, const char* end) {
    if (contents_.run_count != 0 && contents_.field == field) {
      Run& last = runs_.back();
      if (!last.packed && last.bytes.data + last.bytes.size == start) {
        last.bytes.size += static_cast<size_t>(end - start);
        ++contents_.element_count;
        return true;
      }
    }
    return add(field, 1, {{start, static_cast<size_t>(end - start)}, false});
  }

  bool add(uint32_t field, size_t count, Run run) {
    if (contents_.run_count == 0) {
      contents_.field = field;
      contents_.first_run = runs_.size();
    } else if (contents_.field != field) {
      return false;
    }
    if (runs_.size() == most_runs_) return false;
    runs_.push_back(run);
    ++contents_.run_count;
    contents_.element_count += count;
    return true;
  }

  Contents& contents_;
  std::vector<Run>& runs_;
  const size_t most_runs_;
};

// Writes the elements of one input, which ContentsReader has checked, in wire form.
class ContentsWriter {
 public:
  // to   memory for contents.size_as(type) bytes
  ContentsWriter(char* to, DataType type) : to_(to), width_(width_of(type)) {}

  void write(const Contents& contents, const std::vector<Run>& runs) {
    for (size_t i = 0; i < contents.run_count; ++i) {
      const Run& run = runs[contents.first_run + i];
      switch (contents.field) {
        case kFp32Contents:
          fixed<uint32_t>(run);
          break;
        case kFp64Contents:
          fixed<uint64_t>(run);
          break;
        case kBytesContents:
          strings(run);
          break;
        default:
          varints(run, contents.field == kBoolContents);
      }
    }
  }

 private:
  void put(const void* from, size_t size) {
    std::memcpy(to_, from, size);
    to_ += size;
  }

  template <typename Number>
  void fixed(const Run& run) {
    if (run.packed) return put(run.bytes.data, run.bytes.size);
    uint32_t tag;
    Number number{};
    for (Cursor cursor(run.bytes); cursor.more();) {
      if (!cursor.tag(tag) || !cursor.fixed(number)) return;
      put(&number, sizeof number);
    }
  }

  void varints(const Run& run, bool truth) {
    uint32_t tag;
    uint64_t number;
    for (Cursor cursor(run.bytes); cursor.more();) {
      if ((!run.packed && !cursor.tag(tag)) || !cursor.varint(number)) return;
      if (truth) number = number != 0;
      put(&number, width_);  // little endian: keeps the low bytes of a number
    }
  }

  void strings(const Run& run) {
    uint32_t tag;
    Span bytes;
    for (Cursor cursor(run.bytes); cursor.more();) {
      if (!cursor.tag(tag) || !cursor.bytes(bytes)) return;
      const auto size = static_cast<uint32_t>(bytes.size);
      put(&size, sizeof size);
      put(bytes.data, bytes.size);
    }
  }

  char* to_;
  const size_t width_;
};

}  // namespace infer
