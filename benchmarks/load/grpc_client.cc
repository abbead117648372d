// A gRPC client that repeats the same requests.
//
//   grpc_client TARGET PATH CONNECTIONS SECONDS [ANSWER_BYTES BODY]…
//
// CONNECTIONS channels, each with a separate TCP connection and one running call; one thread.
// BODY are files with serialized requests, sent in turn. A call counts as an error unless its status
// is OK and its answer has the ANSWER_BYTES of its request. Prints one JSON object (see generator.py, Load).

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Request {
  size_t answer_bytes;
  grpc::ByteBuffer body;
};

struct Plan {
  std::string path;
  std::vector<Request> requests;
  size_t next = 0;

  const Request& next_request() {
    const auto& request = requests[next];
    next = (next + 1) % requests.size();
    return request;
  }
};

// One connection, and its running call.
class Connection {
 public:
  explicit Connection(const std::string& target) : stub_(open(target)) {}

  void send(Plan& plan, grpc::CompletionQueue& queue) {
    context_ = std::make_unique<grpc::ClientContext>();
    context_->set_wait_for_ready(true);
    answer_.Clear();
    const Request& request = plan.next_request();
    answer_bytes_ = request.answer_bytes;
    started_ = Clock::now();
    call_ = stub_.PrepareUnaryCall(context_.get(), plan.path, request.body, &queue);
    call_->StartCall();
    call_->Finish(&answer_, &status_, this);
  }

  bool right() const { return status_.ok() && answer_.Length() == answer_bytes_; }

  const grpc::Status& status() const { return status_; }

  double microseconds() const {
    return std::chrono::duration<double, std::micro>(Clock::now() - started_).count();
  }

 private:
  static std::shared_ptr<grpc::Channel> open(const std::string& target) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // no sharing of connections
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
  }

  grpc::GenericStub stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> call_;
  grpc::ByteBuffer answer_;
  grpc::Status status_;
  Clock::time_point started_;
  size_t answer_bytes_ = 0;
};

grpc::ByteBuffer read(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) throw std::runtime_error(std::string("cannot read ") + path);
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

double percentile(std::vector<double>& times, double percent) {
  if (times.empty()) return 0;
  const auto at = times.begin() + static_cast<long>((times.size() - 1) * percent / 100);
  std::nth_element(times.begin(), at, times.end());
  return *at;
}

void run(const std::string& target, Plan& plan, int count, double seconds) {
  grpc::CompletionQueue queue;
  std::vector<std::unique_ptr<Connection>> connections;
  for (int i = 0; i < count; ++i) connections.push_back(std::make_unique<Connection>(target));
  std::vector<double> times;
  long errors = 0;
  const auto start = Clock::now();
  const auto end = start + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double>(seconds));
  for (auto& each : connections) each->send(plan, queue);
  for (int in_flight = count; in_flight > 0;) {
    void* tag;
    bool ok;
    if (!queue.Next(&tag, &ok)) break;
    auto* connection = static_cast<Connection*>(tag);
    if (ok && connection->right()) {
      times.push_back(connection->microseconds());
    } else if (errors++ == 0) {
      std::fprintf(stderr, "%d: %s\n", connection->status().error_code(),
                   connection->status().error_message().c_str());
    }
    if (Clock::now() < end) {
      connection->send(plan, queue);
    } else {
      --in_flight;
    }
  }
  const double took = std::chrono::duration<double>(Clock::now() - start).count();
  const double p50 = percentile(times, 50), p99 = percentile(times, 99);
  std::printf("{\"requests\": %zu, \"errors\": %ld, \"seconds\": %.6f, \"p50_us\": %.1f, "
              "\"p99_us\": %.1f}\n", times.size(), errors, took, p50, p99);
  queue.Shutdown();
  void* tag;
  bool ok;
  while (queue.Next(&tag, &ok)) {}
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 7 || argc % 2 == 0) {
    std::fprintf(stderr, "grpc_client TARGET PATH CONNECTIONS SECONDS [ANSWER_BYTES BODY]...\n");
    return 2;
  }
  Plan plan{argv[2], {}};
  for (int i = 5; i < argc; i += 2) {
    plan.requests.push_back({std::strtoul(argv[i], nullptr, 10), read(argv[i + 1])});
  }
  run(argv[1], plan, std::atoi(argv[3]), std::atof(argv[4]));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
