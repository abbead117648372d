// Response of a native backend: outputs that core checks, an error, parameters. It uses no Python, so a test driver
// with sanitizers can act as any backend.
#pragma once
#include <limits.h>

#include <string>
#include <utility>

#include "core_abi.h"
#include "pool.hpp"

namespace core_native {

constexpr size_t kLongestText = 4096;  // of an error, or of a quoted name

// Name, batch dimension and outputs of a model, which the answers of its backend are checked against.
struct Contract {
  struct Output {
    std::string name;
    int32_t dtype;
  };
  std::string model;
  bool has_rows = false;
  bool decoupled = false;
  std::vector<Output> outputs;  // and the states of sequences

  std::string names() const {
    std::string text = "[";
    for (const Output& each : outputs) text += (text.size() > 1 ? ", '" : "'") + each.name + "'";
    return text + "]";
  }
};

// Memory of a client, into which the backend may write an output of one request. The request keeps it.
struct Target {
  int32_t request;
  int32_t output;  // index in the contract
  char* data;
  uint64_t size;
};

struct Output {
  int32_t index;  // in the contract
  int32_t dimensions;
  int64_t shape[CORE_MOST_DIMENSIONS];
  char* data;
  uint64_t size;
  const Target* target;          // owner of `data`, or nullptr
  std::unique_ptr<Block> block;  // owner of `data` without a target
};

struct Parameter {
  std::string name, text;
  int64_t integer;
  double number;
  int32_t kind;
};

inline const char* dtype_name(int32_t dtype) {
  static const char* const names[] = {"no datatype", "BOOL",  "UINT8", "UINT16", "UINT32",
                                      "UINT64",      "INT8",  "INT16", "INT32",  "INT64",
                                      "FP16",        "FP32",  "FP64",  "BYTES",  "BF16"};
  return dtype > 0 && dtype < 15 ? names[dtype] : names[0];
}

inline std::string shape_text(const int64_t* shape, int32_t dimensions) {
  std::string text = "[";
  for (int32_t i = 0; i < dimensions; i++) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

inline std::string bounded(const char* text) { return {text, strnlen(text, kLongestText)}; }

// Return the number of elements of a shape; -1 if a dimension is negative or the number exceeds 2**56.
inline int64_t elements(const int64_t* shape, int32_t dimensions) {
  int64_t count = 1;
  bool none = false;
  for (int32_t i = 0; i < dimensions; i++) {
    if (shape[i] < 0) return -1;
    none = none || !shape[i];
    if (shape[i] && count > (int64_t{1} << 56) / shape[i]) return -1;
    count *= shape[i] ? shape[i] : 1;
  }
  return none ? 0 : count;
}

// Return the size of the first `count` elements of a BYTES tensor in bytes; -1 if `data` has fewer.
inline int64_t bytes_of(const char* data, uint64_t size, int64_t count) {
  const char *at = data, *end = data + size, *element;
  uint32_t length;
  for (; count > 0; count--)
    if (!core_next_bytes(&at, end, &element, &length)) return -1;
  return at - data;
}

}  // namespace core_native

// The opaque type of core_abi.h: outputs or an error, and parameters, for a batch or for one request.
struct core_answer {
  const core_native::Contract* contract = nullptr;
  std::shared_ptr<core_native::Pool> pool;
  const std::vector<core_native::Target>* targets = nullptr;
  int64_t rows = 0;          // that outputs must have; -1 for any
  int32_t request = -1;      // whose targets it may use; -1 for none
  bool touched = false;      // the backend has asked for it, or has written to it
  bool is_later = false;
  bool is_whole = false;     // batch->all
  bool ended = false;
  int32_t failed = CORE_OK;
  std::string text;          // of the failure
  std::vector<core_native::Output> outputs;
  std::vector<core_native::Parameter> parameters;
  void* owner = nullptr;     // sender of a response that `later` has created
  const volatile int* cancelled = nullptr;
  std::vector<const volatile int*> held;

  void clear() {
    touched = false;
    failed = CORE_OK;
    text.clear();
    outputs.clear();
    parameters.clear();
  }

  int32_t fail(int32_t kind, std::string why) {
    touched = true;
    if (!failed) {
      failed = kind > CORE_OK && kind <= CORE_FATAL ? kind : CORE_INTERNAL;
      text = std::move(why);
    }
    return failed;
  }

  // Check an output and add it, without memory. Return nullptr if it is refused: the answer is an error then.
  core_native::Output* declare(const char* name, int32_t dtype, const int64_t* shape, int32_t dimensions,
                               uint64_t byte_size) {
    using namespace core_native;
    touched = true;
    // Error texts are created only if there is an error.
    const auto gave = [this] { return "model '" + contract->model + "' gave output "; };
    if (!name) return refused(gave() + "without a name");
    int32_t index = -1;
    for (size_t i = 0; i < contract->outputs.size() && index < 0; i++)
      if (contract->outputs[i].name == name) index = static_cast<int32_t>(i);
    if (index < 0)
      return refused("unexpected inference output '" + bounded(name) + "' for model '" +
                     contract->model + "'; its configuration has " + contract->names());
    const auto named = [&] { return gave() + "'" + contract->outputs[index].name + "' "; };
    if (dtype != contract->outputs[index].dtype)
      return refused(named() + "as " + dtype_name(dtype) + ", its configuration says " +
                     dtype_name(contract->outputs[index].dtype));
    if (dimensions < 0 || dimensions > CORE_MOST_DIMENSIONS || (dimensions && !shape))
      return refused(named() + "with " + std::to_string(dimensions) + " dimensions" +
                     (shape || dimensions < 0 ? "; 0 to " + std::to_string(CORE_MOST_DIMENSIONS) + " can be"
                                              : " and no shape"));
    const auto shaped = [&] { return named() + "with shape " + shape_text(shape, dimensions); };
    const int64_t count = elements(shape, dimensions);
    if (count < 0) return refused(shaped() + ", which is no shape of a tensor");
    if (contract->has_rows && rows >= 0 && (!dimensions || shape[0] != rows))
      return refused(shaped() + " for a batch of " + std::to_string(rows) +
                     " rows: the first dimension must be " + std::to_string(rows));
    const uint64_t element = core_element_size(dtype);
    const uint64_t size = element ? element * static_cast<uint64_t>(count) : byte_size;
    if (byte_size && byte_size != size)
      return refused(shaped() + " and " + std::to_string(byte_size) + " bytes; that shape of " +
                     dtype_name(dtype) + " has " + std::to_string(size));
    for (const Output& other : outputs)
      if (other.index == index) return refused(named() + "twice");
    outputs.emplace_back();
    Output& made = outputs.back();
    made.index = index;
    made.dimensions = dimensions;
    for (int32_t i = 0; i < dimensions; i++) made.shape[i] = shape[i];
    made.data = nullptr;
    made.size = size;
    made.target = nullptr;
    return &made;
  }

  std::nullptr_t refused(std::string why) {
    fail(CORE_INTERNAL, std::move(why));
    return nullptr;
  }

  // Give memory to the output declared last: the client's, or a block. nullptr without memory: an error then.
  void* allocate(core_native::Output* output) {
    using namespace core_native;
    // After a cancellation, the client may use its memory for something else.
    if (request >= 0 && !(cancelled && *cancelled))
      for (const Target& target : *targets)
        if (target.request == request && target.output == output->index && output->size &&
            output->size <= target.size) {
          output->target = &target;
          return output->data = target.data;
        }
    output->block = Block::of(pool, output->size);
    if (!output->block) {
      const std::string name = contract->outputs[output->index].name, size = std::to_string(output->size);
      outputs.pop_back();  // it is the last one
      fail(CORE_UNAVAILABLE, "no memory for the " + size + " bytes of output '" + name + "'");
      return nullptr;
    }
    return output->data = output->block->data;
  }
};
