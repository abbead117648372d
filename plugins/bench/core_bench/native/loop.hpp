// Loop: sends the requests of one round, in a closed or an open loop, and measures them. One thread.
//
// Closed: each connection sends its next request when the last one is answered. Open: requests are due at times that
// do not depend on the server. One that is due while all connections are busy waits, and its latency counts from the
// time at which it was due. So a server that stalls cannot make the load generator omit what it would have measured.
#pragma once

#include <sys/timerfd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "arrivals.hpp"
#include "connection.hpp"
#include "http_connection.hpp"
#ifdef CORE_BENCH_NGHTTP2
#include "grpc_connection.hpp"
#endif

namespace bench {

// settle_ns    load before the measured time
// measure_ns   the measured time
// at_least     a closed loop measures longer until so many requests have ended
// drain_ns     how long answers are waited for after that
// give_up_ns   the round ends if the server has refused all connections for so long
struct Round {
  int64_t settle_ns = 0, measure_ns = 0, drain_ns = 0, give_up_ns = 0;
  uint64_t at_least = 0;
};

class Loop final : public Owner {
 public:
  explicit Loop(const Settings& settings)
      : settings_(settings), arrivals_(settings_), chooser_(settings_), buffer_(256 * 1024) {
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    epoll_event event{EPOLLIN, {}};
    event.data.ptr = nullptr;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, timer_, &event);
  }

  ~Loop() override {
    connections_.clear();
    ::close(timer_);
    ::close(epoll_);
  }

  // Runs one round. Returns false if the server was lost.
  bool run(const Round& round, Tally& tally) {
    tally_ = &tally;
    round_ = round;
    active_ = true;
    lost_ = false;
    starved_ = false;
    refused_since_ = 0;
    const int64_t start = now_ns();
    tally.begin = start + round.settle_ns;
    tally.end = INT64_MAX;
    goal_ = tally.begin + round.measure_ns;
    if (open_loop()) {
      tally.end = goal_;
      arrivals_.begin(start);
    }
    cpu_begin_ = 0;
    drain_until_ = INT64_MAX;
    poll(0);  // notices connections that the server has closed since the last round
    while (step()) {
    }
    close_busy();
    tally_ = nullptr;
    return !lost_;
  }

  // Ends the round as soon as possible; from any thread.
  void stop() { stopped_.store(true, std::memory_order_relaxed); }

  uint64_t progress() const { return progress_.load(std::memory_order_relaxed); }
  uint64_t errors() const { return errors_.load(std::memory_order_relaxed); }

 private:
  static constexpr int64_t kTick = 20'000'000;    // for timeouts and for reconnecting
  static constexpr int64_t kSpin = 30'000;        // shorter waits are not left to the timer
  static constexpr int kMostEvents = 256;

  bool open_loop() const { return settings_.pace != Pace::closed; }

  // One turn of the loop. Returns false when the round is over.
  bool step() {
    int64_t now = now_ns();
    if (now - ticked_ >= kTick) tick(now);
    if (active_) {
      while (connections_.size() < settings_.connections) add_connection();
      reopen();
      if (!cpu_begin_ && now >= tally_->begin) cpu_begin_ = thread_cpu_ns();
      // An open loop also at the end: what was due before it is sent if a connection is free.
      if (open_loop()) dispatch(now);
      if (now >= goal_ || stopped_ || lost_) end_if_due(now);
      if (active_ && !open_loop()) dispatch(now);
    }
    if (!active_ && (!busy_ || now >= drain_until_ || lost_ || stopped_)) return false;
    wait(now);
    return true;
  }

  void end_if_due(int64_t now) {
    if (refused_since_ && !stopped_ && !lost_) return;  // it comes back, or it is lost
    if (stopped_ || lost_) {
      tally_->end = std::max(now, tally_->begin + 1);
    } else if (!open_loop()) {
      if (tally_->completed + tally_->failed < round_.at_least) return;
      tally_->end = now;
    }
    active_ = false;
    drain_until_ = now + round_.drain_ns;
    if (cpu_begin_) tally_->cpu_ns = thread_cpu_ns() - cpu_begin_;
    if (!stopped_ && !lost_) {
      for (Connection* each : std::exchange(idle_, {})) go_on(*each, now);  // ends their sequences
    }
    if (!open_loop()) return;
    for (; arrivals_.due() < tally_->end; arrivals_.advance()) {
      if (arrivals_.due() >= tally_->begin) {
        tally_->censored(tally_->end - arrivals_.due(), false);
      }
    }
  }

  void dispatch(int64_t now) {
    if (!open_loop()) {
      while (!idle_.empty()) start(take_idle(), now, now);
      return;
    }
    while (arrivals_.due() <= now && arrivals_.due() < tally_->end) {
      if (idle_.empty()) {
        starved_ = true;
        if (!opening_ && connections_.size() < settings_.most_connections) add_connection();
        return;
      }
      tally_->waited += starved_ && arrivals_.due() >= tally_->begin;
      start(take_idle(), arrivals_.due(), now_ns(), starved_);
      arrivals_.advance();
    }
    starved_ = false;
  }

  Connection& take_idle() {
    Connection& last = *idle_.back();
    idle_.pop_back();
    return last;
  }

  void start(Connection& each, int64_t due, int64_t now, bool waited = false) {
    each.exchange = Exchange();
    each.exchange.waited = waited;
    each.exchange.due = due;
    each.exchange.sent = now;
    each.exchange.measured = tally_->within(due);
    ++busy_;
    Fields fields;
    const Request& request = chooser_.next(each.sequence, fields);
    tally_->sequences += fields.start;
    each.start(request, fields);
  }

  void wait(int64_t now) {
    int64_t until = active_ ? (now < goal_ ? goal_ : now + kTick) : drain_until_;
    if (active_ && open_loop() && !starved_) until = std::min(until, arrivals_.due());
    if (active_ && !cpu_begin_) until = std::min(until, tally_->begin);
    int timeout = int(kTick / 1'000'000);
    if (until - now < kSpin) {
      timeout = 0;
    } else if (until - now < kTick && until != armed_) {
      armed_ = until;
      const itimerspec at{{0, 0}, {until / 1'000'000'000, until % 1'000'000'000}};
      timerfd_settime(timer_, TFD_TIMER_ABSTIME, &at, nullptr);
    }
    poll(timeout);
  }

  void poll(int timeout_ms) {
    epoll_event events[kMostEvents];
    const int count = epoll_wait(epoll_, events, kMostEvents, timeout_ms);
    for (int i = 0; i < count; ++i) {
      auto* each = static_cast<Connection*>(events[i].data.ptr);
      if (each) {
        each->handle(events[i].events, buffer_.data(), buffer_.size());
      } else {
        uint64_t expired;
        if (::read(timer_, &expired, sizeof expired) > 0) armed_ = 0;
      }
    }
  }

  void tick(int64_t now) {
    ticked_ = now;
    for (auto& each : connections_) {
      if (each->state() == Connection::State::closed) {
        if (active_) each->open();
      } else if (each->state() == Connection::State::busy &&
                 now - each->exchange.sent > settings_.timeout_ns) {
        each->close();
        failed(*each, "timeout");
      }
    }
    lost_ = lost_ || (refused_since_ && now - refused_since_ > round_.give_up_ns && !busy_);
  }

  void add_connection() {
    connections_.push_back(make());
    ++opening_;
    connections_.back()->open();
  }

  std::unique_ptr<Connection> make() {
#ifdef CORE_BENCH_NGHTTP2
    if (settings_.protocol != Protocol::http) {
      return std::make_unique<GrpcConnection>(settings_, *this, epoll_);
    }
#endif
    return std::make_unique<HttpConnection>(settings_, *this, epoll_);
  }

  // Opens what the server has closed. What it refuses waits for the next tick.
  void reopen() {
    for (Connection* each : std::exchange(closed_, {})) {
      if (each->state() == Connection::State::closed) each->open();
    }
  }

  // What had no answer in time.
  void close_busy() {
    for (auto& each : connections_) {
      if (each->state() != Connection::State::busy) continue;
      if (each->exchange.measured) tally_->censored(now_ns() - each->exchange.due, true);
      each->close();
    }
    busy_ = 0;
  }

  void connected(Connection& each) override {
    opening_ = 0;
    refused_since_ = 0;
    idle_.push_back(&each);
  }

  void response(Connection& each) override {
    const int64_t now = now_ns();
    if (each.exchange.last && each.exchange.measured) tally_->gap.add(now - each.exchange.last);
    each.exchange.response(now);
  }

  void answered(Connection& each) override {
    const int64_t now = now_ns();
    --busy_;
    refused_since_ = 0;
    tally_->answered(each.exchange, now);
    progress_.store(progress_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    go_on(each, now);
  }

  void failed(Connection& each, const std::string& text) override {
    --busy_;
    tally_->error(text);
    errors_.store(errors_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    go_on(each, now_ns());
  }

  // In a closed loop the next request follows at once; else the connection is free. A closed one is opened again.
  void go_on(Connection& each, int64_t now) {
    if (each.state() == Connection::State::closed) return closed_.push_back(&each);
    if (active_ && !open_loop() && now < goal_) return start(each, now, now);
    // A sequence that is not ended would keep its slot in the server, and hold up those of the next round.
    if (!active_ && each.sequence.step < each.sequence.length) return start(each, now, now);
    idle_.push_back(&each);
  }

  void dropped(Connection& each) override {
    forget_idle(each);
    closed_.push_back(&each);
  }

  void refused(Connection& each, const std::string& text) override {
    forget_idle(each);
    opening_ = 0;
    if (tally_ && active_) tally_->error(text);
    if (!refused_since_) refused_since_ = now_ns();
  }

  void forget_idle(Connection& each) {
    idle_.erase(std::remove(idle_.begin(), idle_.end(), &each), idle_.end());
  }

  const Settings settings_;
  Arrivals arrivals_;
  Chooser chooser_;
  std::vector<char> buffer_;
  int epoll_ = -1, timer_ = -1;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> idle_, closed_;
  Tally* tally_ = nullptr;
  Round round_;
  bool active_ = false, lost_ = false, starved_ = false;
  int64_t goal_ = 0, drain_until_ = 0, ticked_ = 0, armed_ = 0, refused_since_ = 0, cpu_begin_ = 0;
  size_t busy_ = 0, opening_ = 0;
  std::atomic<bool> stopped_{false};
  std::atomic<uint64_t> progress_{0}, errors_{0};
};

}  // namespace bench
