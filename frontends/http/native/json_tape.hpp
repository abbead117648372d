// JSON text → a flat list of its values, or the position and the reason of the first error.
//
// bytes ─► [Tape] ─► json_value.pyx.  It creates no Python objects, so that it runs without the GIL. The size
// of the list is limited; a large array or string that a Plan selects is one item. Grammar, errors and their
// positions follow RapidJSON, which Triton uses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "json_items.hpp"

namespace http_json {

class Tape {
 public:
  // Parse a JSON text once; the items have views of it. Anything but kRead leaves no usable items.
  //
  // most_values   limit of values and keys that become items
  // most_text     limit of the size of their strings in bytes
  Outcome read(const char* json, size_t size, Plan plan, size_t most_values, size_t most_text) {
    begin_ = at_ = json;
    end_ = json + size;
    plan_ = plan;
    most_values_ = most_values;
    most_text_ = most_text;
    if (size >= 3 && std::memcmp(at_, "\xEF\xBB\xBF", 3) == 0) at_ += 3;  // a byte order mark
    skip_space();
    if (at_ == end_) return fail("The document is empty", at_), outcome_;
    if (!value(0, Role::kRoot)) return outcome_;
    skip_space();
    if (at_ != end_) fail("The document root must not be followed by other values", at_);
    return outcome_;
  }

  const char* reason() const { return reason_; }
  size_t position() const { return position_; }
  const std::vector<Item>& items() const { return items_; }
  const std::vector<Summary>& summaries() const { return summaries_; }

 private:
  enum class Role { kPlain, kRoot, kInputs, kInput, kGroup, kLarge };

  bool fail(const char* reason, const char* place) {
    outcome_ = Outcome::kMalformed;
    reason_ = reason;
    position_ = static_cast<size_t>(place - begin_);
    return false;
  }
  bool stop(Outcome outcome) {
    outcome_ = outcome;
    return false;
  }

  void skip_space() {
    while (at_ < end_ && is_space(*at_)) ++at_;
  }

  // Add a value: as an item, or to the summary of the array that stays text. Return false beyond most_values.
  bool add(const Item& item, unsigned kind) {
    if (summary_ != nullptr) {
      ++values_;
      summary_->kinds |= kind;
      summary_->leaves += kind != 0;
      return true;
    }
    if (items_.size() >= most_values_) return stop(Outcome::kTooMany);
    items_.push_back(item);
    return true;
  }

  bool value(int depth, Role role) {
    if (at_ == end_) return fail("Invalid value", at_);
    switch (*at_) {
      case '{': return object(depth + 1, role);
      case '[': return role == Role::kLarge ? large_array(depth) : array(depth + 1, role);
      case '"': return string(role == Role::kLarge && plan_ == Plan::kMembers);
      case 't': return word("true", ItemKind::kTrue, kHasTruth);
      case 'f': return word("false", ItemKind::kFalse, kHasTruth);
      case 'n': return word("null", ItemKind::kNull, kHasNull);
      default: return number();
    }
  }

  bool word(const char* text, ItemKind kind, unsigned bit) {
    for (; *text != '\0'; ++text, ++at_) {
      if (at_ == end_ || *at_ != *text) return fail("Invalid value", at_);
    }
    Item item;
    item.kind = kind;
    return add(item, bit);
  }

  Role member_role(Role role, const Text& key) const {
    switch (role) {
      case Role::kRoot:
        if (plan_ == Plan::kInference) return equals(key, "inputs") ? Role::kInputs : Role::kPlain;
        if (plan_ == Plan::kMembers) return equals(key, "parameters") ? Role::kGroup : Role::kLarge;
        return Role::kPlain;
      case Role::kInput: return equals(key, "data") ? Role::kLarge : Role::kPlain;
      case Role::kGroup: return Role::kLarge;
      default: return Role::kPlain;
    }
  }

  // Read an object or array up to its `close`; `part` reads one member or element. Set `length_` to their
  // number. `missing` is the error without a comma.
  template <class Part>
  bool parts(char close, const char* missing, Part part) {
    size_t count = 0;
    ++at_;
    skip_space();
    bool closed = at_ < end_ && *at_ == close;
    at_ += closed;
    for (; !closed; ++count) {
      if (!part()) return false;
      skip_space();
      if (at_ == end_ || (*at_ != ',' && *at_ != close)) return fail(missing, at_);
      closed = *at_++ == close;
      if (!closed) skip_space();
    }
    length_ = count;
    return true;
  }

  bool object(int depth, Role role) {
    if (depth > kMostNesting) return stop(Outcome::kTooDeep);
    const size_t place = items_.size();
    Item item;
    item.kind = ItemKind::kObject;
    if (!add(item, kHasObject)) return false;
    // Values in an object are not leaves of the array around the object.
    Summary inner;
    Summary* const outer = summary_;
    if (outer != nullptr) summary_ = &inner;
    const auto member = [&] {
      if (at_ == end_ || *at_ != '"') return fail("Missing a name for object member", at_);
      Text key;
      if (!string(false, &key)) return false;
      skip_space();
      if (at_ == end_ || *at_ != ':') return fail("Missing a colon after a name of object member", at_);
      ++at_;
      skip_space();
      return value(depth, member_role(role, key));
    };
    if (!parts('}', "Missing a comma or } after an object member", member)) return false;
    summary_ = outer;
    if (outer == nullptr) items_[place].count = length_;
    return true;
  }

  bool array(int depth, Role role) {
    if (depth > kMostNesting) return stop(Outcome::kTooDeep);
    const size_t place = items_.size();
    Item item;
    item.kind = ItemKind::kArray;
    if (!add(item, 0)) return false;
    if (summary_ != nullptr) summary_->depth = std::max(summary_->depth, depth - base_);
    const Role inner = role == Role::kInputs ? Role::kInput : Role::kPlain;
    const auto element = [&] { return value(depth, inner); };
    if (!parts(']', "Missing a comma or ] after an array element", element)) return false;
    if (summary_ == nullptr) items_[place].count = length_;
    return true;
  }

  // Read an array as one item that stays text, or, if it is small, as an ordinary array.
  bool large_array(int depth) {
    const char* const begin = at_;
    Summary found;
    summary_ = &found;
    base_ = depth;
    values_ = 0;
    if (!array(depth + 1, Role::kPlain)) return false;
    summary_ = nullptr;
    if (values_ <= kSmallArray) {
      at_ = begin;
      return array(depth + 1, Role::kPlain);
    }
    found.length = length_;
    return keep_text(ItemKind::kElements, begin, found);
  }

  bool keep_text(ItemKind kind, const char* begin, const Summary& summary) {
    Item item;
    item.kind = kind;
    item.text = {begin, static_cast<size_t>(at_ - begin)};
    item.count = summaries_.size();
    summaries_.push_back(summary);
    return add(item, 0);
  }

  // Read a string.
  // large   whether it stays text if it is large
  // key     gets the string if it is a key; null for a value
  bool string(bool large, Text* key = nullptr) {
    const char* const begin = at_++;
    std::string* unescaped = nullptr;
    Text text{at_, 0};
    size_t size = 0;
    for (;;) {
      const char* const start = at_;
      while (at_ < end_ && kPlain[static_cast<unsigned char>(*at_)]) ++at_;
      size += static_cast<size_t>(at_ - start);
      if (unescaped != nullptr) unescaped->append(start, at_);
      if (at_ == end_ || *at_ == '\0') return fail("Missing a closing quotation mark in string", at_);
      if (*at_ == '"') break;
      if (*at_ == '\\') {
        if (unescaped == nullptr && summary_ == nullptr) {
          unescaped_.emplace_back(text.data, at_);
          unescaped = &unescaped_.back();
        }
        char character[4];
        const char* const escape = at_;
        const char* mistake;
        const size_t length = take_escape(at_, end_, character, mistake);
        if (length == 0) return fail(mistake, escape);
        size += length;
        if (unescaped != nullptr) unescaped->append(character, length);
        continue;
      }
      const size_t length = static_cast<unsigned char>(*at_) < 0x80 ? 0 : utf8_length(at_, end_);
      if (length == 0) return fail("Invalid encoding in string", at_);
      size += length;
      if (unescaped != nullptr) unescaped->append(at_, length);
      at_ += length;
    }
    ++at_;
    text.size = size;
    if (unescaped != nullptr) text = {unescaped->data(), unescaped->size()};
    if (key != nullptr) *key = text;
    if (summary_ != nullptr) {
      summary_->text_bytes += size;
      return key != nullptr || add(Item{}, kHasText);
    }
    if (large && size > kSmallText) {
      Summary found;
      found.leaves = found.length = 1;
      found.kinds = kHasText;
      found.text_bytes = size;
      if (unescaped != nullptr) unescaped_.pop_back();
      return keep_text(ItemKind::kLongText, begin, found);
    }
    text_bytes_ += size;
    if (text_bytes_ > most_text_) return stop(Outcome::kTooMuchText);
    Item item;
    item.kind = ItemKind::kString;
    item.text = text;
    return add(item, kHasText);
  }

  bool number() {
    const char* const begin = at_;
    bool integral;
    Item item;
    if (const char* const mistake = skip_number(at_, end_, integral)) {
      const char* place = begin;
      if (at_ > begin + 1 || !read_real(place, end_, item.real)) return fail(mistake, at_);
      at_ = place;  // NaN, Inf or Infinity
      item.kind = ItemKind::kReal;
      return add(item, kHasReal);
    }
    // Whatever has so few digits is within 64 bits, and no array of them is converted twice.
    if (summary_ != nullptr && integral && at_ - begin <= kSafeDigits - 1) return add(item, kHasInteger);
    const char* place = begin;
    if (integral && read_integer(place, at_, item.integer)) {
      item.kind = ItemKind::kInteger;
      return add(item, kHasInteger);
    }
    place = begin;
    if (integral && read_integer(place, at_, item.natural)) {
      item.kind = ItemKind::kUnsigned;
      return add(item, kHasInteger);
    }
    place = begin;
    if (!read_real(place, at_, item.real)) return fail("Number too big to be stored in double", begin);
    item.kind = ItemKind::kReal;
    return add(item, kHasReal);
  }

  const char* begin_ = nullptr;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  Plan plan_ = Plan::kNone;
  size_t most_values_ = 0;
  size_t most_text_ = 0;
  size_t text_bytes_ = 0;
  std::vector<Item> items_;
  std::vector<Summary> summaries_;
  std::deque<std::string> unescaped_;  // elements stay where they are
  Outcome outcome_ = Outcome::kRead;
  const char* reason_ = "";
  size_t position_ = 0;

  // State of the array that stays text and is being read; there is none if `summary_` is null.
  Summary* summary_ = nullptr;
  int base_ = 0;        // levels that it is in
  size_t values_ = 0;   // in it
  size_t length_ = 0;   // parts of the array or object that has ended last
};

}  // namespace http_json
