// x: FP32[rows, columns] -> y: FP32[rows, columns]
#include <Python.h>
#include <core_abi.h>

#include <cstdio>
#include <vector>

struct Scaler {
  core_instance native{};
  std::vector<float> mean, deviation;
};

static int32_t execute(void *self, core_batch *batch, char *error, size_t error_size) {
  const auto &scaler = *static_cast<Scaler *>(self);
  const core_tensor *x = core_input(batch, "x");
  const size_t columns = scaler.mean.size();
  if (x->shape[1] != int64_t(columns)) {
    snprintf(error, error_size, "scaler.json has %zu columns, x has %lld", columns, (long long)x->shape[1]);
    return CORE_INVALID;
  }
  auto *to = static_cast<float *>(batch->core->output(batch->all, "y", CORE_FP32, x->shape, x->dimensions, 0));
  if (!to) return CORE_INTERNAL;  // core knows why
  const auto *from = static_cast<const float *>(x->data);
  for (int64_t row = 0; row < batch->rows; row++)
    for (size_t column = 0; column < columns; column++)
      *to++ = (*from++ - scaler.mean[column]) / scaler.deviation[column];
  return CORE_OK;
}

static bool numbers(PyObject *list, std::vector<float> *into) {
  for (Py_ssize_t i = 0; i < PyList_Size(list); i++) into->push_back(float(PyFloat_AsDouble(PyList_GetItem(list, i))));
  return !PyErr_Occurred();
}

static void release(PyObject *capsule) {
  delete static_cast<Scaler *>(PyCapsule_GetContext(capsule));
}

static PyObject *scaler(PyObject *, PyObject *arguments) {
  PyObject *mean, *deviation;
  if (!PyArg_ParseTuple(arguments, "O!O!", &PyList_Type, &mean, &PyList_Type, &deviation)) return nullptr;
  auto *made = new Scaler;
  PyObject *capsule = PyCapsule_New(&made->native, CORE_INSTANCE_CAPSULE, release);
  PyCapsule_SetContext(capsule, made);
  made->native.abi_version = CORE_ABI_VERSION;
  made->native.struct_size = sizeof(core_instance);
  made->native.self = made;
  made->native.execute = execute;
  if (numbers(mean, &made->mean) && numbers(deviation, &made->deviation)) {
    if (made->mean.size() == made->deviation.size()) return capsule;
    PyErr_SetString(PyExc_ValueError, "scaler.json has not as many deviations as means");
  }
  Py_DECREF(capsule);
  return nullptr;
}

static PyMethodDef functions[] = {
    {"scaler", scaler, METH_VARARGS, "A capsule for ModelInstance.native, which owns the instance."}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "native", nullptr, 0, functions};

PyMODINIT_FUNC PyInit_native(void) { return PyModule_Create(&module); }
