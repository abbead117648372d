// Memory of a session as Python objects: blocks are `bytes`, owners are any objects. Needs the GIL.
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
    // No other code has a reference to these bytes yet, so that their size may change.
    PyObject* moved = static_cast<PyObject*>(block);
    _PyBytes_Resize(&moved, static_cast<Py_ssize_t>(size));
    return placed(moved, data);
  }
  void retain(void* owner) override { Py_INCREF(static_cast<PyObject*>(owner)); }
  void release(void* owner) override { Py_DECREF(static_cast<PyObject*>(owner)); }

 private:
  static void* placed(PyObject* block, char** data) {
    if (block == nullptr) {
      PyErr_Clear();  // the session reports the failure
    } else {
      *data = PyBytes_AS_STRING(block);
    }
    return block;
  }
};

}  // namespace core_grpc
