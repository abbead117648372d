// Calls of member functions of libopenvino_genai, which is loaded already.
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>
#include <typeinfo>

// Names only: their std::type_info is the one by which pybind11 finds the C++ object of a Python object.
namespace ov::genai {
class ContinuousBatchingPipeline {};
class StructuredOutputConfig {};
class Tokenizer {};
}  // namespace ov::genai

namespace members {

inline const void* pipeline_type() { return &typeid(ov::genai::ContinuousBatchingPipeline); }
inline const void* structure_type() { return &typeid(ov::genai::StructuredOutputConfig); }
inline const void* tokenizer_type() { return &typeid(ov::genai::Tokenizer); }
inline const char* type_info_name() { return typeid(std::type_info).name(); }
inline const char* name_of(const void* type) { return static_cast<const std::type_info*>(type)->name(); }

// Return the address of an exported function. Throws std::runtime_error if the library does not have it.
inline void* exported(const char* library, const char* name) {
  // RTLD_NOLOAD: the functions must be those of the library that made the objects.
  void* handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  void* found = handle ? dlsym(handle, name) : nullptr;
  if (handle) dlclose(handle);
  if (!found) throw std::runtime_error(std::string(library) + " has no function " + name);
  return found;
}

inline void call(void* function, void* object) { reinterpret_cast<void (*)(void*)>(function)(object); }

inline void call(void* function, const void* object, void* argument) {
  reinterpret_cast<void (*)(const void*, void*)>(function)(object, argument);
}

}  // namespace members
