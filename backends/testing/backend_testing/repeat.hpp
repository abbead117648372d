// repeat: sends one answer for each element of IN, DELAY[i] ms after the previous one. The next request starts
// after WAIT ms.
#pragma once
#include <cstdio>

#include "waiting.hpp"

namespace backend_testing {

class Repeat {
 public:
  core_instance native{};

  Repeat() {
    native.abi_version = CORE_ABI_VERSION;
    native.struct_size = sizeof native;
    native.self = this;
    native.execute = execute;
  }

  void close() { threads_.join(); }

 private:
  static int32_t execute(void* self, core_batch* batch, char*, size_t) {
    // Without a batch dimension there is one request in a batch.
    const core_tensor* in = core_input(batch, "IN");
    const core_tensor* delay = core_input(batch, "DELAY");
    const core_tensor* wait_ms = core_input(batch, "WAIT");
    if (in->byte_size != delay->byte_size) {
      char text[128];  // clients of Triton's repeat match this text
      snprintf(text, sizeof text, "expected IN and DELAY shape to match, got [%lld] and [%lld]",
               static_cast<long long>(in->shape[0]), static_cast<long long>(delay->shape[0]));
      batch->core->fail(batch->core->one(batch, 0), CORE_INVALID, text);
      return CORE_OK;
    }
    const auto milliseconds = *static_cast<const uint32_t*>(wait_ms->data);
    const core_calls* core = batch->core;
    core_answer* answer = core->later(batch, 0);
    if (!answer) return CORE_INTERNAL;
    // The inputs stay valid until the answer is released.
    const auto* values = static_cast<const int32_t*>(in->data);
    const auto* delays = static_cast<const uint32_t*>(delay->data);
    const auto count = static_cast<uint32_t>(in->byte_size / sizeof(int32_t));
    const volatile int* cancelled = batch->requests[0].cancelled;
    if (!static_cast<Repeat*>(self)->threads_.run(
            [=] { answer_all(core, answer, values, delays, count); })) {
      core->fail(answer, CORE_UNAVAILABLE, "no thread for the answers");
      core->send(answer, 1);
      core->release(answer);
      return CORE_OK;
    }
    // Do not use `answer` here: it may be released already.
    wait(milliseconds, [cancelled] { return *cancelled != 0; });
    return CORE_OK;
  }

  static void answer_all(const core_calls* core, core_answer* answer, const int32_t* values,
                         const uint32_t* delays, uint32_t count) {
    const int64_t one = 1;
    for (uint32_t i = 0; i < count; i++) {
      wait(delays[i], [=] { return core->is_cancelled(answer) != 0; });
      auto* out = static_cast<int32_t*>(core->output(answer, "OUT", CORE_INT32, &one, 1, 0));
      auto* index = static_cast<uint32_t*>(core->output(answer, "IDX", CORE_UINT32, &one, 1, 0));
      if (out) *out = values[i];
      if (index) *index = i;
      if (!send(core, answer)) break;
    }
    core->release(answer);  // ends the stream
  }

  Threads threads_;
};

}  // namespace backend_testing
