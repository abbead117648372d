// A Host that calls functions of Cython with their object. Needs the GIL.
#pragma once

#include <string>

#include "host.hpp"

namespace core_grpc {

class PythonHost : public Host {
 public:
  // Set the functions that the methods call. They must raise nothing; `connection` and `share` are borrowed,
  // and must outlive this object.
  void connect(void* connection, int (*admit)(void*, int32_t, int32_t), void* share,
               int (*take)(void*, size_t, std::string*), void (*give)(void*, size_t),
               void (*give_unpaid)(void*, size_t)) {
    connection_ = connection;
    admit_ = admit;
    share_ = share;
    take_ = take;
    give_ = give;
    give_unpaid_ = give_unpaid;
  }
  bool admit(int32_t id, int32_t method) override { return admit_(connection_, id, method) != 0; }
  bool take(size_t size, std::string& why) override { return take_(share_, size, &why) != 0; }
  void give(size_t size) override { give_(share_, size); }
  void give_unpaid(size_t size) override { give_unpaid_(share_, size); }

 private:
  void* connection_ = nullptr;
  int (*admit_)(void*, int32_t, int32_t) = nullptr;
  void* share_ = nullptr;
  int (*take_)(void*, size_t, std::string*) = nullptr;
  void (*give_)(void*, size_t) = nullptr;
  void (*give_unpaid_)(void*, size_t) = nullptr;
};

}  // namespace core_grpc
