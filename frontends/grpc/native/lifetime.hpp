// Time limits of a connection: keepalive, age, limits of pings, budgets for frames.
//
// It has no clock: every function takes the time, in nanoseconds of one steady clock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "headers.hpp"

namespace core_grpc {

// Times and limits of pings of a connection. Times are in nanoseconds, NEVER for none. They mean the same as
// grpcio's channel arguments.
struct Times {
  int64_t keepalive_ns = NEVER;
  int64_t keepalive_timeout_ns = NEVER;
  bool keepalive_without_calls = false;
  int64_t most_pings_without_data = 2;  // 0 for any number
  int64_t least_ping_interval_ns = 0;   // of the client, before it is a strike
  int64_t most_ping_strikes = 2;        // 0 for any number
  int64_t age_ns = NEVER;
  int64_t age_grace_ns = NEVER;
  int64_t settle_ns = 120'000'000'000;  // limit for the client's SETTINGS
};

constexpr int64_t IDLE_PING_INTERVAL_NS = 7'200'000'000'000;  // allowed to clients without calls
constexpr int64_t LAST_CALLS_NS = 20'000'000'000;  // limit for the reply to the ping before the last GOAWAY

enum class Action { none, ping, give_up, announce_end, end, cut_off };

inline int64_t later(int64_t now, int64_t wait) { return wait >= NEVER - now ? NEVER : now + wait; }

class Lifetime {
 public:
  Lifetime(const Times& times, int64_t now_ns)
      : times_(times),
        last_read_(now_ns),
        settle_by_(later(now_ns, times.settle_ns)),
        ping_at_(later(now_ns, times.keepalive_ns)),
        announce_at_(later(now_ns, times.age_ns)) {}

  // Return the time at which `due` must be called; NEVER if there is no timeout.
  int64_t wake_ns() const {
    return std::min({settle_by_, ping_at_, answer_by_, announce_at_, end_at_, cut_at_});
  }

  void on_read(int64_t now_ns) {
    last_read_ = now_ns;
    answer_by_ = NEVER;
  }

  void on_settled() { settle_by_ = NEVER; }
  void on_data_sent() {
    pings_without_data_ = 0;
    strikes_ = 0;
    last_client_ping_ = -1;
  }

  // Count a ping of the client. False if there were too many early ones.
  // calls   whether the connection has calls
  bool on_client_ping(int64_t now_ns, bool calls) {
    int64_t interval = calls || times_.keepalive_without_calls
                           ? times_.least_ping_interval_ns
                           : std::max(times_.least_ping_interval_ns, IDLE_PING_INTERVAL_NS);
    bool early = last_client_ping_ >= 0 && now_ns < later(last_client_ping_, interval);
    last_client_ping_ = now_ns;
    if (early) ++strikes_;
    return !early || times_.most_ping_strikes == 0 || strikes_ <= times_.most_ping_strikes;
  }

  // Note the client's reply to the ping after `announce_end`. True if the last GOAWAY is due now.
  bool on_announcement_seen() {
    bool wanted = end_at_ != NEVER;
    end_at_ = NEVER;
    return wanted;
  }

  // Return one action that is due, and take it off; call again until it returns none.
  // calls   whether the connection has calls
  Action due(int64_t now_ns, bool calls) {
    if (now_ns >= settle_by_ || now_ns >= answer_by_) {
      settle_by_ = answer_by_ = NEVER;
      return Action::give_up;
    }
    if (now_ns >= cut_at_) {
      cut_at_ = NEVER;
      return Action::cut_off;
    }
    if (now_ns >= announce_at_) {
      announce_at_ = NEVER;
      end_at_ = later(now_ns, LAST_CALLS_NS);
      cut_at_ = later(now_ns, times_.age_grace_ns);
      return Action::announce_end;
    }
    if (now_ns >= end_at_) {
      end_at_ = NEVER;
      return Action::end;
    }
    if (now_ns >= ping_at_) return keepalive(now_ns, calls);
    return Action::none;
  }

 private:
  Action keepalive(int64_t now_ns, bool calls) {
    int64_t quiet_until = later(last_read_, times_.keepalive_ns);
    if (now_ns < quiet_until) {
      ping_at_ = quiet_until;
      return Action::none;
    }
    ping_at_ = later(now_ns, std::max<int64_t>(times_.keepalive_ns, 1));
    if (!calls && !times_.keepalive_without_calls) return Action::none;
    int64_t most = times_.most_pings_without_data;
    if (most != 0 && pings_without_data_ >= most) return Action::none;
    ++pings_without_data_;
    answer_by_ = std::min(answer_by_, later(now_ns, times_.keepalive_timeout_ns));
    return Action::ping;
  }

  Times times_;
  int64_t last_read_;
  int64_t settle_by_, ping_at_, answer_by_ = NEVER, announce_at_, end_at_ = NEVER, cut_at_ = NEVER;
  int64_t pings_without_data_ = 0, strikes_ = 0, last_client_ping_ = -1;
};

// A budget that limits frames of a client: `burst` units at once, then `per_second`, and more by `earn`.
class Budget {
 public:
  Budget(double burst, double per_second, int64_t now_ns)
      : burst_(burst), rate_(per_second / 1e9), left_(burst), filled_ns_(now_ns) {}

  // Use one unit. False, and nothing is used, if the budget is empty.
  bool spend(int64_t now_ns) {
    if (left_ < 1) {
      left_ = std::min(burst_, left_ + static_cast<double>(now_ns - filled_ns_) * rate_);
      filled_ns_ = now_ns;
      if (left_ < 1) return false;
    }
    left_ -= 1;
    return true;
  }

  void earn(double amount) { left_ = std::min(burst_, left_ + amount); }

 private:
  double burst_, rate_, left_;
  int64_t filled_ns_;
};

}  // namespace core_grpc
