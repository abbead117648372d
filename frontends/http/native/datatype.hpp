// The datatypes of the v2 protocol, in the order of core.dtypes.ALL; kNone is no datatype.
#pragma once

#include <cstddef>
#include <cstdint>

#include "json_cursor.hpp"

namespace http_json {

enum class DataType : int {
  kBool, kUint8, kUint16, kUint32, kUint64, kInt8, kInt16, kInt32, kInt64, kFp16, kFp32, kFp64, kBytes,
  kBf16, kNone,
};

// Size of one element in wire form in bytes; 0 for BYTES, whose elements have no fixed size.
constexpr size_t kElementSizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 0, 2, 0};

inline size_t element_size(DataType type) { return kElementSizes[static_cast<int>(type)]; }

// Return the datatype of a name; kNone for an unknown name.
inline DataType datatype_of(Text name) {
  switch (word_key(name)) {
    case word_key("BOOL"): return DataType::kBool;
    case word_key("UINT8"): return DataType::kUint8;
    case word_key("UINT16"): return DataType::kUint16;
    case word_key("UINT32"): return DataType::kUint32;
    case word_key("UINT64"): return DataType::kUint64;
    case word_key("INT8"): return DataType::kInt8;
    case word_key("INT16"): return DataType::kInt16;
    case word_key("INT32"): return DataType::kInt32;
    case word_key("INT64"): return DataType::kInt64;
    case word_key("FP16"): return DataType::kFp16;
    case word_key("FP32"): return DataType::kFp32;
    case word_key("FP64"): return DataType::kFp64;
    case word_key("BYTES"): return DataType::kBytes;
    case word_key("BF16"): return DataType::kBf16;
    default: return DataType::kNone;
  }
}

}  // namespace http_json
