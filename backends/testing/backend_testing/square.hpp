// square: sends IN answers, each with the value IN. Parameters turn some of the last answers into errors, or omit
// them.
#pragma once
#include "waiting.hpp"

namespace backend_testing {

class Square {
 public:
  int64_t infer_delay_ns = 0, output_delay_ns = 0;
  int64_t cancel_delay_ns = 0;  // delay after a cancellation
  int64_t fail_count = 0, empty_count = 0;  // the last answers are omitted, the ones before them fail
  core_instance native{};

  Square() {
    native.abi_version = CORE_ABI_VERSION;
    native.struct_size = sizeof native;
    native.flags = CORE_NOT_GATHERED;  // requests are answered one by one
    native.self = this;
    native.execute = execute;
  }

  void close() { threads_.join(); }

 private:
  static int32_t execute(void* self, core_batch* batch, char*, size_t) {
    auto* square = static_cast<Square*>(self);
    const core_calls* core = batch->core;
    const int32_t dimensions = batch->has_rows ? 2 : 1;
    for (int32_t i = 0; i < batch->request_count; i++) {
      const core_request& request = batch->requests[i];
      if (batch->has_rows && request.rows != 1) {
        core->fail(core->one(batch, i), CORE_INVALID, "a request to square has one row");
        continue;
      }
      int32_t count;
      memcpy(&count, request.inputs[0].data, sizeof count);
      core_answer* answer = core->later(batch, i);
      if (!answer) continue;
      if (count < 0)
        end(core, answer, CORE_INVALID, "IN is negative: there cannot be fewer than no answers");
      else if (!square->threads_.run([=] { square->answer_all(core, answer, count, dimensions); }))
        end(core, answer, CORE_UNAVAILABLE, "no thread for the answers");
    }
    return CORE_OK;
  }

  static void end(const core_calls* core, core_answer* answer, int32_t kind, const char* text) {
    core->fail(answer, kind, text);
    core->send(answer, 1);
    core->release(answer);
  }

  void answer_all(const core_calls* core, core_answer* answer, int32_t count, int32_t dimensions) const {
    const int64_t shape[] = {1, 1};
    const auto cancelled = [=] { return core->is_cancelled(answer) != 0; };
    for (int64_t i = 0; i < count && !cancelled(); i++) {
      wait_for(std::chrono::nanoseconds(infer_delay_ns), cancelled);
      if (i >= count - empty_count) continue;
      auto* out = static_cast<int32_t*>(core->output(answer, "OUT", CORE_INT32, shape, dimensions, 0));
      if (out) *out = count;
      wait_for(std::chrono::nanoseconds(output_delay_ns), cancelled);
      if (i >= count - empty_count - fail_count) core->fail(answer, CORE_UNKNOWN, "simulated failure");
      if (!send(core, answer)) break;
    }
    if (cancelled()) wait_for(std::chrono::nanoseconds(cancel_delay_ns), [] { return false; });
    core->release(answer);  // ends the stream
  }

  Threads threads_;
};

}  // namespace backend_testing
