// Delays that a cancellation ends, and threads that send answers after execute has returned.
#pragma once
#include <core_abi.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace backend_testing {

using Clock = std::chrono::steady_clock;

template <typename Duration, typename Condition>
void wait_for(Duration duration, Condition ends_early) {
  const auto end = Clock::now() + duration;
  const auto look = std::chrono::milliseconds(5);
  for (auto now = Clock::now(); now < end && !ends_early(); now = Clock::now())
    std::this_thread::sleep_for(end - now < look ? end - now : Clock::duration(look));
}

template <typename Condition>
void wait(int64_t milliseconds, Condition ends_early) {
  if (milliseconds > 0) wait_for(std::chrono::milliseconds(milliseconds), ends_early);
}

// Wait until the client has room, then send an answer. Return false, without sending, if the request is
// cancelled.
inline bool send(const core_calls* core, core_answer* answer) {
  while (!core->has_room(answer) && !core->is_cancelled(answer))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (core->is_cancelled(answer)) return false;
  core->send(answer, 0);
  return true;
}

// The threads of one instance. Call `join` after the last `run`.
class Threads {
 public:
  ~Threads() { join(); }

  // Call `work` on a new thread. Return false if no thread can be started.
  template <typename Work>
  bool run(Work work) {
    {
      std::lock_guard<std::mutex> hold(lock_);
      running_++;
    }
    try {
      std::thread([this, work = std::move(work)]() mutable {
        work();
        std::lock_guard<std::mutex> hold(lock_);
        if (!--running_) none_.notify_all();
      }).detach();
      return true;
    } catch (const std::system_error&) {
      std::lock_guard<std::mutex> hold(lock_);
      running_--;
      return false;
    }
  }

  // Wait until no thread runs. Call it without the GIL, which the threads take when they send answers.
  void join() {
    std::unique_lock<std::mutex> hold(lock_);
    none_.wait(hold, [this] { return !running_; });
  }

 private:
  std::mutex lock_;
  std::condition_variable none_;
  int running_ = 0;
};

}  // namespace backend_testing
