// Properties of a request besides its inputs, for backends that ask for them. It uses no Python.
#pragma once
#include <string>
#include <vector>

#include "core_abi.h"

namespace core_native {

// A core_details that owns its memory. The caller sets the strings, and calls `finish` as the last change.
struct Details : core_details {
  std::string id_, correlation_;
  std::vector<std::string> names_, texts_, outputs_;
  std::vector<core_parameter> parameters_;
  std::vector<const char*> output_names_;

  void add(const std::string& name, int32_t kind, const std::string& text, int64_t integer, double number) {
    core_parameter made = {};
    made.kind = kind;
    made.integer = integer;
    made.number = number;
    names_.push_back(name);
    texts_.push_back(text);
    parameters_.push_back(made);
  }

  const core_details* finish() {
    struct_size = sizeof(core_details);
    reserved = 0;
    for (size_t i = 0; i < parameters_.size(); i++) {
      parameters_[i].name = names_[i].c_str();
      parameters_[i].text = parameters_[i].kind == CORE_TEXT ? texts_[i].c_str() : nullptr;
    }
    for (const std::string& each : outputs_) output_names_.push_back(each.c_str());
    parameter_count = static_cast<int32_t>(parameters_.size());
    output_count = static_cast<int32_t>(outputs_.size());
    id = id_.c_str();
    correlation_text = correlation_.c_str();
    parameters = parameters_.data();
    outputs = output_names_.data();
    return this;
  }
};

}  // namespace core_native
