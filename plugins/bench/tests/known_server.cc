// A server of the v2 protocol over HTTP whose delays are known: for tests and for the comparison with other load generators.
//
//   known_server DELAYS [STALL_AT_MS STALL_MS]
//
// DELAYS is a list of microseconds with commas. Answer number i, counted over all connections, is sent after delay i of
// the list, which repeats; "0" answers at once. With a stall, no answer is sent from STALL_AT_MS for STALL_MS, counted from
// the first request; requests of that time are answered at its end, plus their delay.
// Prints the port. One thread, epoll; a request is the bytes of its head and Content-Length, nothing else is read.
// Metadata describe a model `m` with an input x, FP32[4]. Ends with its standard input.

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <queue>
#include <string>
#include <vector>

namespace {

int64_t now_us() {
  timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return int64_t(at.tv_sec) * 1000000 + at.tv_nsec / 1000;
}

struct Waiting {
  int64_t due;
  int socket;
  uint64_t serial;
  bool operator>(const Waiting& other) const { return due > other.due; }
};

struct Client {
  std::string in;
  uint64_t serial;
};

std::string answer(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

const std::string kMetadata = answer(
    R"({"name":"m","versions":["1"],"platform":"known","inputs":[{"name":"x","datatype":"FP32","shape":[4]}],)"
    R"("outputs":[{"name":"y","datatype":"FP32","shape":[4]}]})");
const std::string kResult = answer(R"({"model_name":"m","model_version":"1","outputs":[]})");
const std::string kMissing = "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}";

// Returns the size of the first whole request, or 0.
size_t whole(const std::string& in) {
  const size_t end = in.find("\r\n\r\n");
  if (end == std::string::npos) return 0;
  size_t size = 0;
  const char* found = strcasestr(in.c_str(), "\r\ncontent-length:");
  if (found && found < in.c_str() + end) size = std::strtoul(found + 17, nullptr, 10);
  return in.size() >= end + 4 + size ? end + 4 + size : 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int64_t> delays;
  for (char* each = std::strtok(argv[1], ","); each; each = std::strtok(nullptr, ",")) delays.push_back(std::atoll(each));
  const int64_t stall_at = argc > 3 ? std::atoll(argv[2]) * 1000 : -1, stall = argc > 3 ? std::atoll(argv[3]) * 1000 : 0;
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bind(listener, reinterpret_cast<sockaddr*>(&where), sizeof where);
  listen(listener, 1024);
  socklen_t size = sizeof where;
  getsockname(listener, reinterpret_cast<sockaddr*>(&where), &size);
  std::printf("%d\n", ntohs(where.sin_port));
  std::fflush(stdout);

  const int poll = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  const auto watch = [poll](int socket) {
    epoll_event event{EPOLLIN, {}};
    event.data.fd = socket;
    epoll_ctl(poll, EPOLL_CTL_ADD, socket, &event);
  };
  for (int each : {listener, timer, 0}) watch(each);
  std::map<int, Client> clients;
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<Waiting>> waiting;
  uint64_t served = 0, serial = 0;
  int64_t first = 0;
  char buffer[65536];
  for (;;) {
    for (int64_t now = now_us(); !waiting.empty() && waiting.top().due <= now; waiting.pop()) {
      const auto found = clients.find(waiting.top().socket);
      if (found != clients.end() && found->second.serial == waiting.top().serial) {
        (void)!send(found->first, kResult.data(), kResult.size(), MSG_NOSIGNAL);
      }
    }
    if (!waiting.empty()) {
      const int64_t due = waiting.top().due;
      const itimerspec at{{0, 0}, {due / 1000000, due % 1000000 * 1000}};
      timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, nullptr);
    }
    epoll_event events[256];
    const int count = epoll_wait(poll, events, 256, -1);
    for (int i = 0; i < count; ++i) {
      const int socket = events[i].data.fd;
      if (socket == 0) return 0;
      if (socket == timer) {
        uint64_t expired;
        (void)!read(timer, &expired, sizeof expired);
      } else if (socket == listener) {
        const int made = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK);
        const int one = 1;
        setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        clients[made] = Client{"", ++serial};
        watch(made);
      } else {
        Client& client = clients[socket];
        const ssize_t got = recv(socket, buffer, sizeof buffer, 0);
        if (got <= 0) {
          if (got < 0 && errno == EAGAIN) continue;
          clients.erase(socket);
          close(socket);
          continue;
        }
        client.in.append(buffer, size_t(got));
        while (const size_t whole_size = whole(client.in)) {
          const bool post = client.in[0] == 'P';
          const bool known = client.in.compare(0, 22, "GET /v2/models/m HTTP/") == 0;
          client.in.erase(0, whole_size);
          if (!post) {
            const std::string& text = known ? kMetadata : kMissing;
            (void)!send(socket, text.data(), text.size(), MSG_NOSIGNAL);
            continue;
          }
          const int64_t now = now_us(), delay = delays[served++ % delays.size()];
          if (!first) first = now;
          int64_t begin = now;
          if (stall && now - first >= stall_at && now - first < stall_at + stall) begin = first + stall_at + stall;
          if (begin == now && delay == 0) {
            (void)!send(socket, kResult.data(), kResult.size(), MSG_NOSIGNAL);
          } else {
            waiting.push({begin + delay, socket, client.serial});
          }
        }
      }
    }
  }
}
