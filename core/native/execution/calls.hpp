// Functions of core_abi.h that need no Python. They throw nothing to the backend.
#pragma once
#include "../system/clock.h"
#include "execution.hpp"

namespace core_native {

inline void* output(core_answer* answer, const char* name, int32_t dtype, const int64_t* shape,
                    int32_t dimensions, uint64_t byte_size) {
  if (!answer) return nullptr;
  try {
    Output* made = answer->declare(name, dtype, shape, dimensions, byte_size);
    return made ? answer->allocate(made) : nullptr;
  } catch (const std::exception&) {
    answer->failed = CORE_UNAVAILABLE;
    return nullptr;
  }
}

inline int32_t give(core_answer* answer, const char* name, int32_t dtype, const int64_t* shape,
                    int32_t dimensions, const void* data, uint64_t byte_size, void (*release)(void*),
                    void* argument) {
  std::unique_ptr<Block> block = release ? Block::borrowed(data, release, argument) : nullptr;
  if (release && !block) {
    release(argument);
    return CORE_UNAVAILABLE;
  }
  if (!answer) return CORE_INVALID;
  try {
    Output* made = answer->declare(name, dtype, shape, dimensions, byte_size);
    if (!made) return CORE_INTERNAL;
    if (made->size && !data) {
      const std::string named = answer->contract->outputs[size_t(made->index)].name;
      answer->outputs.pop_back();
      return answer->fail(CORE_INTERNAL, "model '" + answer->contract->model + "' gave output '" + named +
                                             "' without its data");
    }
    if (block) {
      made->data = block->data;
      made->block = std::move(block);
      return CORE_OK;
    }
    const uint64_t size = made->size;
    void* to = answer->allocate(made);
    if (to && size) memmove(to, data, size);
    return to ? CORE_OK : CORE_UNAVAILABLE;
  } catch (const std::exception&) {
    return answer->failed = CORE_UNAVAILABLE;
  }
}

inline int32_t parameter(core_answer* answer, const core_parameter* given) {
  if (!answer || !given || !given->name || (given->kind == CORE_TEXT && !given->text) ||
      given->kind < CORE_TEXT || given->kind > CORE_NUMBER || answer->is_whole)
    return CORE_INVALID;
  try {
    answer->touched = true;
    answer->parameters.push_back({bounded(given->name), given->kind == CORE_TEXT ? given->text : "",
                                  given->integer, given->number, given->kind});
    return CORE_OK;
  } catch (const std::exception&) {
    return CORE_UNAVAILABLE;
  }
}

inline int32_t fail(core_answer* answer, int32_t kind, const char* text) {
  if (!answer) return CORE_INVALID;
  try {
    answer->fail(kind, text ? bounded(text) : std::string());
  } catch (const std::exception&) {
    answer->failed = CORE_INTERNAL;
  }
  return CORE_OK;
}

inline core_answer* one(core_batch* batch, int32_t request) {
  try {
    return batch ? static_cast<Execution*>(batch)->one(request) : nullptr;
  } catch (const std::exception&) {
    return nullptr;
  }
}

inline int32_t has_room(const core_answer* answer) {
  if (!answer) return 1;
  for (const volatile int* held : answer->held)
    if (*held) return 0;
  return 1;
}

inline int32_t is_cancelled(const core_answer* answer) {
  return answer && answer->cancelled && *answer->cancelled ? 1 : 0;
}

inline int32_t reschedule(core_batch* batch, int32_t request) {
  try {
    return batch && static_cast<Execution*>(batch)->reschedule(request) ? CORE_OK : CORE_INVALID;
  } catch (const std::exception&) {
    return CORE_UNAVAILABLE;
  }
}

inline int64_t now_ns() {
  return core_monotonic_ns();
}

// Return the table of functions, in which those that need Python are missing; callbacks.pyx adds them.
inline core_calls calls_without_python() {
  core_calls calls = {};
  calls.abi_version = CORE_ABI_VERSION;
  calls.struct_size = sizeof calls;
  calls.output = output;
  calls.give = give;
  calls.parameter = parameter;
  calls.fail = fail;
  calls.one = one;
  calls.has_room = has_room;
  calls.is_cancelled = is_cancelled;
  calls.reschedule = reschedule;
  calls.now_ns = now_ns;
  return calls;
}

}  // namespace core_native
