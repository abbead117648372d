// Items of the flat list of a JSON text, which json_tape.hpp creates.
#pragma once

#include <cstddef>
#include <cstdint>

#include "json_cursor.hpp"

namespace http_json {

constexpr int kMostNesting = 1024;      // levels of lists and objects
constexpr size_t kSmallArray = 256;     // values of an array that always becomes a list
constexpr size_t kSmallText = 1 << 16;  // bytes of a string that always becomes a str

// Which values of a document stay text if they are large.
//   kNone      none
//   kInference "data" of each element of "inputs"
//   kMembers   the members of the document, and those of its member "parameters"
enum class Plan : int { kNone, kInference, kMembers };

enum class ItemKind : int {
  kNull, kTrue, kFalse, kInteger, kUnsigned, kReal, kString, kArray, kObject, kElements, kLongText,
};

// Bits of Summary::kinds: which kinds of leaves an array has.
enum : unsigned { kHasNull = 1, kHasTruth = 2, kHasInteger = 4, kHasReal = 8, kHasText = 16, kHasObject = 32 };

// Summary of an array or string that stays text.
//
// leaves       number of values at all levels that are not arrays; an object is one leaf
// length       number of elements of the outermost array
// depth        levels of arrays
// text_bytes   size of all strings in bytes, without escapes
struct Summary {
  size_t leaves = 0;
  size_t length = 0;
  int depth = 0;
  unsigned kinds = 0;
  size_t text_bytes = 0;
};

// One value or key in the flat list of a JSON text.
//
// text    a string without escapes; for kElements and kLongText the JSON text, unchanged
// count   number of elements or members, whose items follow, a member as its key and its value; for kElements
//         and kLongText the index of its Summary
// integer, natural, real   the value for kInteger, kUnsigned, kReal
struct Item {
  ItemKind kind = ItemKind::kNull;
  Text text;
  size_t count = 0;
  int64_t integer = 0;
  uint64_t natural = 0;
  double real = 0;
};

enum class Outcome : int { kRead, kMalformed, kTooDeep, kTooMany, kTooMuchText };

}  // namespace http_json
