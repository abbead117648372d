// Host: callbacks from a session to its connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace core_grpc {

// Interface of the owner of a Session, for calls from the session. Loop thread only. No function may call
// receive, send or next_event of the session.
class Host {
 public:
  virtual ~Host() = default;
  // Decide about a guarded call, after its headers and before its message. Return true to admit it; false if
  // the host has refused it with Session::finish.
  virtual bool admit(int32_t id, int32_t method) = 0;
  // Take `size` more bytes from the memory account. If it refuses them, return false and set `why`, for the
  // client.
  virtual bool take(size_t size, std::string& why) = 0;
  // Return bytes to the memory account.
  virtual void give(size_t size) = 0;
  // Return bytes of decompression, which Session::owe has counted, to the memory account.
  virtual void give_unpaid(size_t size) = 0;
};

// Counts the memory of the calls of one connection. It takes bytes from the host in large steps only, and the
// first UNCOUNTED bytes not at all.
class Holdings {
 public:
  static constexpr size_t UNCOUNTED = 64 * 1024;  // of a connection; equal in core.system.account
  static constexpr size_t STEP = 256 * 1024;      // least amount of one step

  // Count `size` more bytes. If the host refuses them, count nothing, return false and set `why`.
  bool take(size_t size, Host& host, std::string& why) {
    if (size > room_) {
      const size_t more = size - room_ > STEP ? size - room_ : STEP;
      if (!host.take(more, why)) return false;
      room_ += more;
      taken_ += more;
    }
    room_ -= size;
    return true;
  }

  // Count `size` bytes less. Some bytes stay taken from the host, for the next messages.
  void give(size_t size, Host& host) {
    room_ += size;
    if (taken_ != 0 && room_ > 3 * STEP) settle(room_ - STEP, host);
  }

  // Return all bytes to the host: the connection has no call.
  void rest(Host& host) {
    if (taken_ != 0) settle(room_, host);
  }

 private:
  void settle(size_t size, Host& host) {
    if (size > taken_) size = taken_;
    room_ -= size;
    taken_ -= size;
    host.give(size);
  }

  size_t room_ = UNCOUNTED, taken_ = 0;
};

}  // namespace core_grpc
