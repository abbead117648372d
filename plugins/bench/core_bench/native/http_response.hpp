// HttpResponse: reads responses of HTTP/1.1 in pieces, as they arrive.
#pragma once

#include <strings.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

namespace bench {

// Receives the decoded body of a response.
class BodyReader {
 public:
  virtual ~BodyReader() = default;
  virtual void body(std::string_view piece) = 0;
};

class HttpResponse {
 public:
  static constexpr size_t kMostHead = 64 * 1024;

  explicit HttpResponse(BodyReader& reader) : reader_(reader) {}

  void reset() {
    step_ = Step::head;
    head_.clear();
    status_ = 0;
    closes_ = false;
  }

  // Reads `data`. Returns false if it is no HTTP; bytes behind the end of the response are no HTTP either.
  bool feed(std::string_view data) {
    while (!data.empty()) {
      switch (step_) {
        case Step::head:
          if (!read_head(data)) return false;
          break;
        case Step::body: {
          const std::string_view piece = take(data, left_);
          left_ -= piece.size();
          reader_.body(piece);
          if (!left_) step_ = Step::done;
          break;
        }
        case Step::until_close:
          reader_.body(take(data, data.size()));
          break;
        case Step::chunk_data: {
          const std::string_view piece = take(data, left_);
          left_ -= piece.size();
          reader_.body(piece);
          if (!left_) step_ = Step::chunk_end;
          break;
        }
        case Step::chunk_end:
        case Step::chunk_size:
        case Step::trailer:
          if (!read_line(data)) return false;
          break;
        case Step::done:
          return false;
      }
    }
    return true;
  }

  // The connection has ended. Returns whether the response is complete.
  bool end() {
    if (step_ == Step::until_close) step_ = Step::done;
    return done();
  }

  bool done() const { return step_ == Step::done; }
  bool begun() const { return step_ != Step::head || !head_.empty(); }
  int status() const { return status_; }
  bool closes() const { return closes_; }

 private:
  enum class Step { head, body, until_close, chunk_size, chunk_data, chunk_end, trailer, done };

  static std::string_view take(std::string_view& data, size_t most) {
    const std::string_view piece = data.substr(0, std::min(most, data.size()));
    data.remove_prefix(piece.size());
    return piece;
  }

  bool read_head(std::string_view& data) {
    if (head_.empty()) {
      const size_t end = data.find("\r\n\r\n");
      if (end != std::string_view::npos) {
        const bool right = parse(data.substr(0, end + 2));
        data.remove_prefix(end + 4);
        return right;
      }
    }
    const size_t before = head_.size();
    head_.append(data.data(), data.size());
    const size_t end = head_.find("\r\n\r\n", before < 3 ? 0 : before - 3);
    if (end == std::string::npos) {
      data = {};
      return head_.size() <= kMostHead;
    }
    data.remove_prefix(end + 4 - before);
    return parse(std::string_view(head_).substr(0, end + 2));
  }

  // `head` has all lines, each with its end.
  bool parse(std::string_view head) {
    if (head.size() < 14 || head.substr(0, 7) != "HTTP/1.") return false;
    closes_ = head[7] == '0';
    status_ = (head[9] - '0') * 100 + (head[10] - '0') * 10 + (head[11] - '0');
    if (status_ < 100 || status_ > 599) return false;
    bool chunked = false, sized = false;
    size_t at = head.find("\r\n") + 2;
    while (at < head.size()) {
      const size_t end = head.find("\r\n", at);
      const std::string_view line = head.substr(at, end - at);
      at = end + 2;
      const size_t colon = line.find(':');
      if (colon == std::string_view::npos) return false;
      std::string_view value = line.substr(colon + 1);
      while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
      if (named(line, colon, "content-length")) {
        sized = true;
        left_ = 0;
        for (char c : value) {
          if (c < '0' || c > '9') return false;
          left_ = left_ * 10 + size_t(c - '0');
        }
      } else if (named(line, colon, "transfer-encoding")) {
        chunked = value.size() == 7 && !strncasecmp(value.data(), "chunked", 7);
      } else if (named(line, colon, "connection")) {
        closes_ = value.size() == 5 && !strncasecmp(value.data(), "close", 5);
      }
    }
    if (status_ < 200) {  // 100 Continue: the response follows
      head_.clear();
    } else if (status_ == 204 || status_ == 304) {
      step_ = Step::done;
    } else if (chunked) {
      step_ = Step::chunk_size;
      line_.clear();
    } else if (sized) {
      step_ = left_ ? Step::body : Step::done;
    } else {
      step_ = Step::until_close;
      closes_ = true;
    }
    return true;
  }

  static bool named(std::string_view line, size_t colon, std::string_view name) {
    return colon == name.size() && !strncasecmp(line.data(), name.data(), colon);
  }

  // One line between chunks: a size, the end of a chunk, or a trailer.
  bool read_line(std::string_view& data) {
    const size_t end = data.find('\n');
    line_.append(data.substr(0, end));
    if (line_.size() > kMostHead) return false;
    data.remove_prefix(end == std::string_view::npos ? data.size() : end + 1);
    if (end == std::string_view::npos) return true;
    if (!line_.empty() && line_.back() == '\r') line_.pop_back();
    bool right = true;
    if (step_ == Step::chunk_end) {
      right = line_.empty();
      step_ = Step::chunk_size;
    } else if (step_ == Step::trailer) {
      if (line_.empty()) step_ = Step::done;
    } else {
      right = read_size();
      step_ = left_ ? Step::chunk_data : Step::trailer;
    }
    line_.clear();
    return right;
  }

  bool read_size() {
    left_ = 0;
    size_t digits = 0;
    for (char c : line_) {
      const int value = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (value < 0) break;
      left_ = left_ * 16 + size_t(value);
      if (++digits > 15) return false;
    }
    return digits > 0;
  }

  BodyReader& reader_;
  Step step_ = Step::head;
  std::string head_, line_;
  size_t left_ = 0;
  int status_ = 0;
  bool closes_ = false;
};

}  // namespace bench
