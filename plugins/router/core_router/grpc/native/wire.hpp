// Wire and Outgoing: bytes on their way to a transport. Large pieces are never copied: they stay in the Python
// objects that hold them. Callers hold the GIL.
#pragma once

#include <Python.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <vector>

namespace core_router {

// Pieces of at least this size are not copied; smaller ones are cheaper to copy.
constexpr size_t EXTERNAL_FROM = 16 * 1024;

// A piece of a bytes object in a Wire: it goes before byte `at` of Wire::bytes.
struct External {
  size_t at;
  size_t offset;
  size_t size;
  PyObject* owner;  // a reference
};

// The output of one write to a transport.
class Wire {
 public:
  std::string bytes;
  std::vector<External> externals;

  size_t size() const { return bytes.size() + external_bytes_; }
  bool empty() const { return bytes.empty() && externals.empty(); }
  void add(const char* data, size_t size) { bytes.append(data, size); }

  void add_external(PyObject* owner, size_t offset, size_t size) {
    Py_INCREF(owner);
    externals.push_back({bytes.size(), offset, size, owner});
    external_bytes_ += size;
  }

  void clear() {
    for (External& each : externals) Py_DECREF(each.owner);
    externals.clear();
    external_bytes_ = 0;
    bytes.clear();
  }

 private:
  size_t external_bytes_ = 0;
};

// The unsent bytes of one stream. They count in `unsent`, with those of the other streams of its connection.
class Outgoing {
 public:
  explicit Outgoing(size_t& unsent) : unsent_(unsent) {}
  ~Outgoing() { clear(); }
  size_t size() const { return size_; }

  // Append a bytes object; takes a reference of its own.
  void add(PyObject* data) {
    const size_t size = static_cast<size_t>(PyBytes_GET_SIZE(data));
    if (size == 0) return;
    Py_INCREF(data);
    pieces_.push_back(data);
    size_ += size;
    unsent_ += size;
  }

  // Move the next `count` bytes, no more than size(), to the wire.
  void move_to(Wire& wire, size_t count) {
    size_ -= count;
    unsent_ -= count;
    while (count != 0) {
      PyObject* first = pieces_.front();
      const size_t whole = static_cast<size_t>(PyBytes_GET_SIZE(first));
      const size_t taken = std::min(count, whole - offset_);
      if (taken >= EXTERNAL_FROM) {
        wire.add_external(first, offset_, taken);
      } else {
        wire.add(PyBytes_AS_STRING(first) + offset_, taken);
      }
      count -= taken;
      offset_ += taken;
      if (offset_ == whole) {
        offset_ = 0;
        pieces_.pop_front();
        Py_DECREF(first);
      }
    }
  }

  void clear() {
    for (PyObject* each : pieces_) Py_DECREF(each);
    pieces_.clear();
    unsent_ -= size_;
    size_ = offset_ = 0;
  }

 private:
  size_t& unsent_;
  std::deque<PyObject*> pieces_;
  size_t size_ = 0, offset_ = 0;
};

}  // namespace core_router
