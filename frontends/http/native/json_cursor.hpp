// Strict parser of JSON tokens: whitespace, strings, and skipped values.
//
// bytes ─► [Cursor] ─► json_number, tensor_data, infer_request.  Every function returns whether the text is
// valid; after false the position is undefined. No function reads at or after `end`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>

#include "json_characters.hpp"
#include "json_number.hpp"

namespace http_json {

// Deeper documents are left to Python; tensors may not be deeper in any case.
constexpr int kMostDepth = 100;

// A view of bytes of the body, or of Cursor's unescaped strings.
struct Text {
  const char* data = "";
  size_t size = 0;

  bool starts_with(const char* word, size_t length) const {
    return size >= length && std::memcmp(data, word, length) == 0;
  }
};

// Return a word of up to eight bytes as a number, so that one comparison distinguishes words.
template <size_t N>
constexpr uint64_t word_key(const char (&word)[N]) {
  static_assert(N - 1 <= 8, "the word is too long");
  uint64_t key = 0;
  for (size_t i = 0; i < N - 1; ++i) {
    key |= uint64_t{static_cast<unsigned char>(word[i])} << (8 * i);
  }
  return key;
}

// Return the word_key of a text; 0 for "" and for a text of more than eight bytes.
inline uint64_t word_key(Text text) {
  if (text.size > 8) return 0;
  uint64_t key = 0;
  for (size_t i = text.size; i-- > 0;) key = key << 8 | static_cast<unsigned char>(text.data[i]);
  return key;
}

// Return whether a text equals a word of any length: equals(text, "parameters").
template <size_t N>
bool equals(Text text, const char (&word)[N]) {
  return text.size == N - 1 && std::memcmp(text.data, word, N - 1) == 0;
}

inline bool is_space(char c) {
  // The first comparison is all that most bytes take.
  return static_cast<unsigned char>(c) <= ' ' && (c == ' ' || c == '\n' || c == '\r' || c == '\t');
}

class Cursor {
 public:
  Cursor(const char* begin, const char* end) : at_(begin), end_(end) {}

  const char* at() const { return at_; }
  const char* end() const { return end_; }
  void move_to(const char* place) { at_ = place; }

  void skip_space() {
    while (at_ < end_ && is_space(*at_)) ++at_;
  }

  // Skip spaces; return the next byte, which is not taken, or 0 at the end.
  char peek() {
    skip_space();
    return at_ < end_ ? *at_ : '\0';
  }

  // Skip spaces, and take `wanted` if it is next; return whether it was.
  bool take(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }

  // Take a comma at this position, unless a list follows it. May return false for a valid comma with spaces.
  bool take_comma_before_value() {
    if (end_ - at_ < 3 || *at_ != ',') return false;
    const char next = at_[1] == ' ' ? at_[2] : at_[1];
    if (next == '[' || is_space(next)) return false;
    ++at_;
    return true;
  }

  template <size_t N>
  bool take_word(const char (&word)[N]) {
    if (static_cast<size_t>(end_ - at_) < N - 1 || std::memcmp(at_, word, N - 1) != 0) return false;
    at_ += N - 1;
    return true;
  }

  bool take_truth(bool& truth) {
    skip_space();
    if (take_word("true")) return truth = true;
    truth = false;
    return take_word("false");
  }

  template <class Integer>
  bool take_integer(Integer& value) {
    skip_space();
    return read_integer(at_, end_, value);
  }

  bool take_real(double& value) {
    skip_space();
    return read_real(at_, end_, value);
  }

  // Take a string; return whether it is valid. `text` is a view of the bytes, or of a new element of
  // `unescaped` if it has escapes.
  bool take_text(Text& text, std::deque<std::string>& unescaped) {
    if (!take('"')) return false;
    const char* begin = at_;
    if (!to_quote_or_escape()) return false;
    if (*at_ == '"') {
      text = {begin, static_cast<size_t>(at_++ - begin)};
      return true;
    }
    unescaped.emplace_back(begin, at_);
    if (!take_rest(unescaped.back())) return false;
    text = {unescaped.back().data(), unescaped.back().size()};
    return true;
  }

  // Take a string, and append it, without escapes, to `to`, which has `append(const char*, size_t)`.
  template <class Buffer>
  bool append_text(Buffer& to) {
    return take('"') && take_rest(to);
  }

  // Skip any value; return whether it is valid. `depth` is the number of lists and objects around it.
  bool skip_value(int depth = 0) {
    switch (peek()) {
      case '{': return skip_object(depth + 1);
      case '[': return skip_array(depth + 1);
      case '"': {
        Nowhere nowhere;
        return append_text(nowhere);
      }
      case 't': return take_word("true");
      case 'f': return take_word("false");
      case 'n': return take_word("null");
      default: {
        double value;
        return read_real(at_, end_, value);
      }
    }
  }

  // Take an object: for each member set `key` and call `member()`, which takes the value. Stop when it is
  // false.
  template <class Member>
  bool each_member(Text& key, std::deque<std::string>& unescaped, Member member) {
    if (!take('{')) return false;
    if (take('}')) return true;
    do {
      if (!take_text(key, unescaped) || !take(':') || !member()) return false;
    } while (take(','));
    return take('}');
  }

  // Take an array: call `element()`, which takes one element, for each. Stop when it returns false.
  template <class Element>
  bool each_element(Element element) {
    if (!take('[')) return false;
    if (take(']')) return true;
    do {
      if (!element()) return false;
    } while (take(','));
    return take(']');
  }

 private:
  struct Nowhere {
    void append(const char*, size_t) {}
  };

  // Move to the next quote or backslash; false at the end, and for bytes that are invalid in a string.
  bool to_quote_or_escape() {
    for (;;) {
      while (at_ < end_ && kPlain[static_cast<unsigned char>(*at_)]) ++at_;
      if (at_ == end_) return false;
      if (*at_ == '"' || *at_ == '\\') return true;
      if (static_cast<unsigned char>(*at_) < 0x80) return false;
      const size_t length = utf8_length(at_, end_);
      if (length == 0) return false;
      at_ += length;
    }
  }

  // Take the rest of a string after its opening quote, and append it to `to`.
  template <class Buffer>
  bool take_rest(Buffer& to) {
    for (;;) {
      const char* begin = at_;
      if (!to_quote_or_escape()) return false;
      to.append(begin, static_cast<size_t>(at_ - begin));
      if (*at_ == '"') {
        ++at_;
        return true;
      }
      char character[4];
      const char* mistake;
      const size_t length = take_escape(at_, end_, character, mistake);
      if (length == 0) return false;
      to.append(character, length);
    }
  }

  bool skip_object(int depth) {
    if (depth > kMostDepth || !take('{')) return false;
    if (take('}')) return true;
    Nowhere nowhere;
    do {
      if (!append_text(nowhere) || !take(':') || !skip_value(depth)) return false;
    } while (take(','));
    return take('}');
  }

  bool skip_array(int depth) {
    if (depth > kMostDepth) return false;
    return each_element([this, depth] { return skip_value(depth); });
  }

  const char* at_;
  const char* const end_;
};

}  // namespace http_json
