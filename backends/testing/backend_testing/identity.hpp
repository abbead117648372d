// identity: copies INPUT<i> to OUTPUT<i>, for all datatypes and shapes.
#pragma once
#include <core_abi.h>

#include <string>
#include <vector>

#include "waiting.hpp"

namespace backend_testing {

struct Pair {
  std::string input, output;
  int32_t dtype;
  std::vector<int64_t> dims;  // after the reshape; 1 for any size
  bool ragged;
};

class Identity {
 public:
  std::vector<Pair> pairs;
  int64_t delay_ms = 0;
  std::string model, version;
  core_instance native{};

  Identity() {
    native.abi_version = CORE_ABI_VERSION;
    native.struct_size = sizeof native;
    native.flags = CORE_NOT_GATHERED;  // execute copies each request's bytes directly to the output
    native.self = this;
    native.execute = execute;
    native.attach = attach;
  }

  // Release the metric. Call it after the last execution, and not with a lock that a thread with the GIL may
  // wait for.
  void close() {
    if (counter_) core_->metric_release(counter_);
    counter_ = nullptr;
  }

 private:
  static void attach(void* self, const core_calls* core) {
    auto* identity = static_cast<Identity*>(self);
    const core_parameter labels[] = {{"model", identity->model.c_str(), 0, 0, CORE_TEXT, 0},
                                     {"version", identity->version.c_str(), 0, 0, CORE_TEXT, 0}};
    identity->core_ = core;
    identity->counter_ =
        core->metric(CORE_COUNTER, "input_byte_size_counter",
                     "Cumulative input_byte_size across all identity model requests", labels, 2, nullptr, 0);
  }

  static int32_t execute(void* self, core_batch* batch, char*, size_t) {
    auto* identity = static_cast<Identity*>(self);
    wait(identity->delay_ms, [batch] { return all_cancelled(batch); });
    uint64_t bytes = 0;
    for (const Pair& pair : identity->pairs) {
      const core_tensor* whole = core_input(batch, pair.input.c_str());
      if (whole) bytes += whole->byte_size;
      if (!copy(batch, pair, whole)) return CORE_INTERNAL;  // core has recorded the error
    }
    identity->core_->metric_add(identity->counter_, static_cast<double>(bytes));
    return CORE_OK;
  }

  static bool all_cancelled(const core_batch* batch) {
    for (int32_t i = 0; i < batch->request_count; i++)
      if (!*batch->requests[i].cancelled) return false;
    return true;
  }

  static bool copy(core_batch* batch, const Pair& pair, const core_tensor* whole) {
    if (!whole) return zeros(batch, pair);
    const int64_t place = whole - batch->inputs;
    if (pair.ragged) {  // the requests have no common shape
      for (int32_t i = 0; i < batch->request_count; i++) {
        const core_tensor& piece = batch->requests[i].inputs[place];
        if (!put(batch, batch->core->one(batch, i), pair, piece, &piece, 1)) return false;
      }
      return true;
    }
    std::vector<core_tensor> pieces;
    for (int32_t i = 0; i < batch->request_count; i++) pieces.push_back(batch->requests[i].inputs[place]);
    return put(batch, batch->all, pair, *whole, pieces.data(), pieces.size());
  }

  static bool put(core_batch* batch, core_answer* answer, const Pair& pair, const core_tensor& whole,
                  const core_tensor* pieces, size_t count) {
    auto* to = static_cast<char*>(batch->core->output(answer, pair.output.c_str(), whole.dtype, whole.shape,
                                                      whole.dimensions, whole.byte_size));
    for (size_t i = 0; to && i < count; i++) {
      if (pieces[i].byte_size) memcpy(to, pieces[i].data, pieces[i].byte_size);
      to += pieces[i].byte_size;
    }
    return to != nullptr;
  }

  // Write the output of a missing optional input: zeros, or empty strings. Return false if core refuses it.
  static bool zeros(core_batch* batch, const Pair& pair) {
    std::vector<int64_t> shape = pair.dims;
    if (batch->has_rows) shape.insert(shape.begin(), batch->rows);
    uint64_t size = core_element_size(pair.dtype);
    if (!size) size = 4;
    for (int64_t each : shape) size *= static_cast<uint64_t>(each);
    void* to = batch->core->output(batch->all, pair.output.c_str(), pair.dtype, shape.data(),
                                   static_cast<int32_t>(shape.size()), size);
    if (to) memset(to, 0, size);
    return to != nullptr;
  }

  const core_calls* core_ = nullptr;
  core_metric* counter_ = nullptr;
};

}  // namespace backend_testing
