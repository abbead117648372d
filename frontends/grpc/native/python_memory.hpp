// Memory of a session in Python's hands: blocks are `bytes`, owners are any objects. Needs the GIL.
#pragma once

#include <Python.h>

#include "message.hpp"

namespace core_grpc {

class PythonMemory : public Memory {
 public:
  void* make(size_t size, char** data) override {
    PyObject* block = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size));
    return placed(block, data);
  }
  void* resize(void* block, size_t size, char** data) override {
    // Nobody else has seen these bytes yet, so they may still change their size.
    PyObject* moved = static_cast<PyObject*>(block);
    _PyBytes_Resize(&moved, static_cast<Py_ssize_t>(size));
    return placed(moved, data);
  }
  void retain(void* owner) override { Py_INCREF(static_cast<PyObject*>(owner)); }
  void release(void* owner) override { Py_DECREF(static_cast<PyObject*>(owner)); }

 private:
  static void* placed(PyObject* block, char** data) {
    if (block == nullptr) {
      PyErr_Clear();  // the session answers for it
    } else {
      *data = PyBytes_AS_STRING(block);
    }
    return block;
  }
};

}  // namespace core_grpc
