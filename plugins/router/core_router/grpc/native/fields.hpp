// Fields: the fields of a head or of trailers in one block of bytes, which Python code keeps and passes on.
//
// A field is: size of the name and of the value (uint32 each, of this machine), name, value.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace core_router {

inline void append_field(std::string& block, std::string_view name, std::string_view value) {
  const uint32_t sizes[2] = {static_cast<uint32_t>(name.size()), static_cast<uint32_t>(value.size())};
  block.append(reinterpret_cast<const char*>(sizes), sizeof sizes);
  block.append(name);
  block.append(value);
}

// Reads the fields of a block, one after the other.
class FieldReader {
 public:
  explicit FieldReader(std::string_view block) : left_(block) {}

  bool next() {
    uint32_t sizes[2];
    if (left_.size() < sizeof sizes) return false;
    std::memcpy(sizes, left_.data(), sizeof sizes);
    left_.remove_prefix(sizeof sizes);
    name = left_.substr(0, sizes[0]);
    value = left_.substr(sizes[0], sizes[1]);
    left_.remove_prefix(name.size() + value.size());
    return true;
  }

  std::string_view name, value;

 private:
  std::string_view left_;
};

}  // namespace core_router
