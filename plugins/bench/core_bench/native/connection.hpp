// Connection: a socket of the load generator, with at most one request in flight.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "clock.hpp"
#include "sequence.hpp"
#include "settings.hpp"
#include "tally.hpp"

namespace bench {

class Connection;

// What a connection reports. The calls come from within Connection::handle, or from open and start if they fail.
class Owner {
 public:
  virtual ~Owner() = default;
  virtual void connected(Connection&) = 0;  // it is idle now
  virtual void response(Connection&) = 0;   // one of perhaps several
  virtual void answered(Connection&) = 0;   // the request is done; it is idle or closed now
  virtual void failed(Connection&, const std::string& text) = 0;  // the same
  virtual void dropped(Connection&) = 0;    // the server has closed it while it was idle
  virtual void refused(Connection&, const std::string& text) = 0;  // it is closed
};

class Connection {
 public:
  enum class State { closed, connecting, idle, busy };

  Connection(const Settings& settings, Owner& owner, int epoll)
      : settings_(settings), owner_(owner), epoll_(epoll) {}
  virtual ~Connection() { close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Exchange exchange;
  SequenceRun sequence;

  State state() const { return state_; }

  void open() {
    sockaddr_storage where;
    const socklen_t size = fill(where);
    socket_ = ::socket(where.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket_ < 0) return refuse(errno);
    if (where.ss_family != AF_UNIX) {
      const int one = 1;
      setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    state_ = State::connecting;
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&where), size) && errno != EINPROGRESS) {
      return refuse(errno);
    }
    watched_ = EPOLLIN | EPOLLOUT;
    epoll_event event{watched_, {}};
    event.data.ptr = this;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, socket_, &event);
  }

  // Sends a request on an idle connection. The caller has set `exchange`.
  void start(const Request& request, const Fields& fields) {
    state_ = State::busy;
    send(request, fields);
  }

  void handle(uint32_t events, char* buffer, size_t size) {
    if (state_ == State::connecting && !connect_result()) return;
    if ((events & EPOLLOUT) && state_ != State::closed) flush();
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && state_ != State::closed) read(buffer, size);
  }

  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
    state_ = State::closed;
    out_.clear();
    out_begin_ = 0;
    sequence.step = sequence.length = 0;  // the next request begins a sequence
    closed();
  }

 protected:
  virtual void opened() {}  // the connection is there; may write
  virtual void closed() {}
  virtual void send(const Request& request, const Fields& fields) = 0;
  virtual void receive(std::string_view data) = 0;
  virtual void ended(const std::string& reason) = 0;  // the server has closed a busy connection

  // The request is done. `keeps`: another one may follow on the connection.
  void finish(bool keeps) {
    state_ = State::idle;
    if (!keeps) close();
    owner_.answered(*this);
  }

  void fail(const std::string& text, bool keeps) {
    const bool was_busy = state_ == State::busy;
    state_ = State::idle;
    if (!keeps) close();
    if (was_busy) {
      owner_.failed(*this, text);
    } else {
      owner_.refused(*this, text);
    }
  }

  void write(std::string_view data) {
    if (out_begin_ == out_.size()) {
      const ssize_t sent = ::send(socket_, data.data(), data.size(), MSG_NOSIGNAL);
      if (sent == ssize_t(data.size())) return;
      if (sent < 0 && errno != EAGAIN && errno != EINTR) return;  // reading tells the reason
      data.remove_prefix(sent < 0 ? 0 : size_t(sent));
      out_.clear();
      out_begin_ = 0;
    }
    out_.append(data);
    watch(EPOLLIN | EPOLLOUT);
  }

  const Settings& settings_;
  Owner& owner_;
  State state_ = State::closed;

 private:
  socklen_t fill(sockaddr_storage& where) const {
    std::memset(&where, 0, sizeof where);
    if (!settings_.port) {
      auto* path = reinterpret_cast<sockaddr_un*>(&where);
      path->sun_family = AF_UNIX;
      std::strncpy(path->sun_path, settings_.address.c_str(), sizeof path->sun_path - 1);
      return sizeof(sockaddr_un);
    }
    auto* four = reinterpret_cast<sockaddr_in*>(&where);
    if (inet_pton(AF_INET, settings_.address.c_str(), &four->sin_addr) == 1) {
      four->sin_family = AF_INET;
      four->sin_port = htons(settings_.port);
      return sizeof(sockaddr_in);
    }
    auto* six = reinterpret_cast<sockaddr_in6*>(&where);
    std::memset(&where, 0, sizeof where);
    inet_pton(AF_INET6, settings_.address.c_str(), &six->sin6_addr);
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(settings_.port);
    return sizeof(sockaddr_in6);
  }

  void refuse(int error) {
    close();
    owner_.refused(*this, std::string("cannot connect: ") + std::strerror(error));
  }

  bool connect_result() {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error) {
      refuse(error);
      return false;
    }
    state_ = State::idle;
    watch(EPOLLIN);
    opened();
    owner_.connected(*this);
    return true;
  }

  void flush() {
    while (out_begin_ < out_.size()) {
      const ssize_t sent =
          ::send(socket_, out_.data() + out_begin_, out_.size() - out_begin_, MSG_NOSIGNAL);
      if (sent <= 0) return;
      out_begin_ += size_t(sent);
    }
    out_.clear();
    out_begin_ = 0;
    watch(EPOLLIN);
  }

  void read(char* buffer, size_t size) {
    for (;;) {
      const ssize_t got = ::recv(socket_, buffer, size, 0);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (got <= 0) {
        const std::string reason = got < 0 ? std::strerror(errno) : "";
        if (state_ == State::busy) return ended(reason);
        close();
        return owner_.dropped(*this);
      }
      receive(std::string_view(buffer, size_t(got)));
      if (size_t(got) < size || state_ == State::closed) return;
    }
  }

  void watch(uint32_t events) {
    if (events == watched_) return;
    watched_ = events;
    epoll_event event{events, {}};
    event.data.ptr = this;
    epoll_ctl(epoll_, EPOLL_CTL_MOD, socket_, &event);
  }

  int epoll_;
  int socket_ = -1;
  uint32_t watched_ = 0;
  std::string out_;
  size_t out_begin_ = 0;
};

}  // namespace bench
