// Host: callbacks from a session to its connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace core_grpc {

// The owner of a Session. Loop thread only. No function may call receive, send or next_event of the session.
class Host {
 public:
  virtual ~Host() = default;
  // Admit a guarded call, after its headers and before its message. False: the host has refused it with
  // Session::finish.
  virtual bool admit(int32_t id, int32_t method) = 0;
  // Take `size` more bytes from the memory account. False, with the text `why` for the client, if refused.
  virtual bool take(size_t size, std::string& why) = 0;
  // Return bytes to the memory account.
  virtual void give(size_t size) = 0;
  // Return bytes from decompression, see Session::owe.
  virtual void give_unpaid(size_t size) = 0;
};

// The memory of the calls of one connection. It takes from the host only large steps.
class Holdings {
 public:
  static constexpr size_t UNCOUNTED = 64 * 1024;  // of a connection; equal in core.system.account
  static constexpr size_t STEP = 256 * 1024;      // least amount of one step

  // Count `size` more bytes. False, with the reason, if the host refuses them.
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

  // Count `size` bytes less. Keeps some bytes of the account for the next messages.
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
