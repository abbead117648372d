// What a session asks its host in the middle of its work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace core_grpc {

// The other side of a Session. Loop thread only. No function may feed the session or take from it.
class Host {
 public:
  virtual ~Host() = default;
  // The headers of a guarded call are here and nothing of its message is. False: the host has refused
  // it, by Session::finish.
  virtual bool admit(int32_t id, int32_t method) = 0;
  // Room for `size` more bytes of messages. False, and `why` for the client, if there is none.
  virtual bool take(size_t size, std::string& why) = 0;
  // Room is not needed any more.
  virtual void give(size_t size) = 0;
  // The same for what decompression made, see Session::owe.
  virtual void give_unpaid(size_t size) = 0;
};

// What the calls of one connection hold, counted in steps: the host hears of large ones only.
class Holdings {
 public:
  static constexpr size_t UNCOUNTED = 64 * 1024;  // of a connection; core.system.account has the same
  static constexpr size_t STEP = 256 * 1024;      // the least that is asked for

  // Count `size` more bytes. False, with the reason, if the host has no room for them.
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

  // Count `size` bytes less. Some room is kept for what comes next.
  void give(size_t size, Host& host) {
    room_ += size;
    if (taken_ != 0 && room_ > 3 * STEP) settle(room_ - STEP, host);
  }

  // Keep no room: the connection has no call.
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
