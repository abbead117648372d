// Native backends for tests: some behave, most do not. Built as a shared library; `player(name)` gives the
// core_instance of one. Those that need no Python are also played by driver.cpp, under sanitizers.
#include <atomic>
#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "core_abi.h"

namespace {

using Execute = int32_t (*)(void*, core_batch*, char*, size_t);

std::atomic<int> released{0};       // how often core has called `release` of give
std::atomic<int> attached{0};
std::atomic<bool> go{false};        // what `waits` waits for
std::atomic<bool> inside{false};    // it is in execute
const core_calls* calls = nullptr;
std::thread worker;                 // of those that answer later
std::atomic<int> sent{-1};          // what the last call of send has returned

void count_release(void* data) {
  released++;
  delete[] static_cast<char*>(data);
}

// y = x, for every datatype.
int32_t copy(void*, core_batch* batch, char*, size_t) {
  const core_tensor* x = core_input(batch, "x");
  void* y = batch->core->output(batch->all, "y", x->dtype, x->shape, x->dimensions, x->byte_size);
  if (!y) return CORE_INTERNAL;
  if (x->byte_size) memcpy(y, x->data, x->byte_size);
  return CORE_OK;
}

// The same, request by request, from where its bytes lie.
int32_t copy_each(void*, core_batch* batch, char*, size_t) {
  for (int32_t i = 0; i < batch->request_count; i++) {
    const core_tensor& x = batch->requests[i].inputs[0];
    core_answer* answer = batch->core->one(batch, i);
    void* y = batch->core->output(answer, "y", x.dtype, x.shape, x.dimensions, x.byte_size);
    if (!y) return CORE_INTERNAL;
    if (x.byte_size) memcpy(y, x.data, x.byte_size);
  }
  return CORE_OK;
}

int32_t give(void*, core_batch* batch, char*, size_t) {
  const core_tensor* x = core_input(batch, "x");
  char* own = new char[x->byte_size + 1];
  if (x->byte_size) memcpy(own, x->data, x->byte_size);
  return batch->core->give(batch->all, "y", x->dtype, x->shape, x->dimensions, own, x->byte_size,
                           count_release, own);
}

int32_t give_copied(void*, core_batch* batch, char*, size_t) {
  const core_tensor* x = core_input(batch, "x");
  std::vector<char> own(static_cast<const char*>(x->data), static_cast<const char*>(x->data) + x->byte_size);
  own.push_back(0);
  int32_t rc = batch->core->give(batch->all, "y", x->dtype, x->shape, x->dimensions, own.data(), x->byte_size,
                                 nullptr, nullptr);
  std::fill(own.begin(), own.end(), 77);
  return rc;
}

int32_t give_refused(void*, core_batch* batch, char*, size_t) {
  int64_t shape = batch->rows;
  char* own = new char[4];
  batch->core->give(batch->all, "nobody", CORE_FP32, &shape, 1, own, 4, count_release, own);
  return CORE_OK;
}

// Outputs that core must refuse.
template <int32_t kDtype, int32_t kDimensions>
int32_t wrong(const char* name, core_batch* batch, const int64_t* shape, uint64_t size = 0) {
  batch->core->output(batch->all, name, kDtype, shape, kDimensions, size);
  return CORE_OK;  // as if nothing had been: core must know better
}

int32_t undeclared(void*, core_batch* b, char*, size_t) {
  int64_t shape = b->rows;
  return wrong<CORE_FP32, 1>("nobody", b, &shape);
}
int32_t long_name(void*, core_batch* b, char*, size_t) {
  int64_t shape = b->rows;
  return wrong<CORE_FP32, 1>(std::string(1 << 20, 'n').c_str(), b, &shape);
}
int32_t no_name(void*, core_batch* b, char*, size_t) { return wrong<CORE_FP32, 0>(nullptr, b, nullptr); }
int32_t other_dtype(void*, core_batch* b, char*, size_t) {
  int64_t shape = b->rows;
  return wrong<CORE_INT8, 1>("y", b, &shape);
}
int32_t no_dtype(void*, core_batch* b, char*, size_t) {
  int64_t shape = b->rows;
  return wrong<-7, 1>("y", b, &shape);
}
int32_t other_rows(void*, core_batch* b, char*, size_t) {
  int64_t shape = b->rows + 1;
  return wrong<CORE_FP32, 1>("y", b, &shape);
}
int32_t negative_shape(void*, core_batch* b, char*, size_t) {
  int64_t shape[] = {b->rows, -3};
  return wrong<CORE_FP32, 2>("y", b, shape);
}
int32_t huge_shape(void*, core_batch* b, char*, size_t) {
  int64_t shape[] = {b->rows, INT64_MAX, INT64_MAX};
  return wrong<CORE_FP32, 3>("y", b, shape);
}
int32_t too_large(void*, core_batch* b, char*, size_t) {
  int64_t shape[] = {b->rows, int64_t{1} << 50};
  return wrong<CORE_FP32, 2>("y", b, shape);
}
int32_t negative_dimensions(void*, core_batch* b, char*, size_t) {
  int64_t shape = b->rows;
  return wrong<CORE_FP32, -1>("y", b, &shape);
}
int32_t many_dimensions(void*, core_batch* b, char*, size_t) {
  std::vector<int64_t> shape(1000, 1);
  return wrong<CORE_FP32, 1000>("y", b, shape.data());
}
int32_t no_shape(void*, core_batch* b, char*, size_t) { return wrong<CORE_FP32, 2>("y", b, nullptr); }
int32_t other_size(void*, core_batch* b, char*, size_t) {
  int64_t shape = b->rows;
  return wrong<CORE_FP32, 1>("y", b, &shape, 3);
}
int32_t twice(void*, core_batch* b, char*, size_t) {
  int64_t shape = b->rows;
  wrong<CORE_FP32, 1>("y", b, &shape);
  return wrong<CORE_FP32, 1>("y", b, &shape);
}
int32_t no_data(void*, core_batch* b, char*, size_t) {
  int64_t shape = b->rows;
  b->core->give(b->all, "y", CORE_FP32, &shape, 1, nullptr, 0, nullptr, nullptr);
  return CORE_OK;
}

int32_t silent(void*, core_batch*, char*, size_t) { return CORE_OK; }
int32_t fails(void*, core_batch*, char* error, size_t size) {
  snprintf(error, size, "the forest is on fire");
  return CORE_UNAVAILABLE;
}
// It has asked for outputs, and not written them.
int32_t breaks_off(void*, core_batch* batch, char* error, size_t size) {
  const core_tensor* x = core_input(batch, "x");
  batch->core->output(batch->all, "y", x->dtype, x->shape, x->dimensions, x->byte_size);
  batch->core->reschedule(batch, 0);
  snprintf(error, size, "the kernel has failed");
  return CORE_UNAVAILABLE;
}
int32_t fails_without_text(void*, core_batch*, char*, size_t) { return CORE_INTERNAL; }
int32_t fails_without_end(void*, core_batch*, char* error, size_t size) {
  memset(error, 'e', size);
  return CORE_INTERNAL;
}
int32_t fails_in_no_language(void*, core_batch*, char* error, size_t) {
  memcpy(error, "\xff\xfe caf\xe9", 8);
  return CORE_INTERNAL;
}
int32_t fails_unheard_of(void*, core_batch*, char*, size_t) { return -12345; }
int32_t fatal(void*, core_batch*, char* error, size_t size) {
  snprintf(error, size, "the device is gone");
  return CORE_FATAL;
}
int32_t fails_first(void* self, core_batch* batch, char* error, size_t size) {
  batch->core->fail(batch->core->one(batch, 0), CORE_INVALID, "not this one");
  batch->core->fail(batch->core->one(batch, 0), CORE_INTERNAL, "a second error");
  return copy(self, batch, error, size);
}

// Every call with what cannot be.
int32_t nonsense(void*, core_batch* batch, char*, size_t) {
  const core_calls* core = batch->core;
  int64_t shape = 1;
  core_parameter bad = {nullptr, nullptr, 0, 0, 99, 0}, good = {"p", nullptr, 1, 0, CORE_INTEGER, 0};
  bool wrong = core->output(nullptr, "y", CORE_FP32, &shape, 1, 0) || core->one(batch, -1) ||
               core->one(batch, batch->request_count) || core->one(nullptr, 0) ||
               core->parameter(batch->all, &good) == CORE_OK || core->parameter(nullptr, &bad) == CORE_OK ||
               core->parameter(core->one(batch, 0), nullptr) == CORE_OK ||
               core->parameter(core->one(batch, 0), &bad) == CORE_OK ||
               core->fail(nullptr, 1, nullptr) == CORE_OK || core->reschedule(batch, -5) == CORE_OK ||
               core->reschedule(nullptr, 0) == CORE_OK || core->reschedule(batch, 0) == CORE_OK ||
               !core->has_room(nullptr) || core->is_cancelled(nullptr);
  if (core->later)
    wrong = wrong || core->later(batch, 0) || core->later(batch, 1000) || core->later(nullptr, 0) ||
            core->send(nullptr, 1) == CORE_OK || core->send(batch->all, 1) == CORE_OK ||
            core->details(batch, -1) || core->details(nullptr, 0) ||
            core->metric_add(nullptr, 1) == CORE_OK || core->metric_set(nullptr, 1) == CORE_OK ||
            core->metric(77, "x", "", nullptr, 0, nullptr, 0) ||
            core->metric(CORE_GAUGE, nullptr, "", nullptr, 0, nullptr, 0);
  if (core->later) {
    core->release(nullptr);
    core->release(batch->all);
    core->metric_release(nullptr);
    core->log(12, nullptr);
  }
  core->fail(core->one(batch, 0), 1000, wrong ? "core took it" : "core refused it all");
  return CORE_OK;
}

int32_t malformed_text(void*, core_batch* batch, char*, size_t) {
  int64_t shape = batch->rows;
  char* y = static_cast<char*>(batch->core->output(batch->all, "y", CORE_BYTES, &shape, 1, 6));
  if (y) memset(y, 0xff, 6);
  return CORE_OK;
}

int32_t parameters(void* self, core_batch* batch, char* error, size_t size) {
  core_answer* answer = batch->core->one(batch, 0);
  const core_parameter given[] = {{"text", "a\xff", 0, 0, CORE_TEXT, 0},
                                  {"integer", nullptr, -7, 0, CORE_INTEGER, 0},
                                  {"boolean", nullptr, 5, 0, CORE_BOOLEAN, 0},
                                  {"number", nullptr, 0, 0.5, CORE_NUMBER, 0}};
  for (const core_parameter& each : given) batch->core->parameter(answer, &each);
  return copy_each(self, batch, error, size);
}

// What the details of the request say, as the text of an error.
int32_t details(void*, core_batch* batch, char*, size_t) {
  for (int32_t i = 0; i < batch->request_count; i++) {
    const core_details* d = batch->core->details(batch, i);
    const core_request& r = batch->requests[i];
    std::string text = std::string(d->id) + " " + std::to_string(d->correlation_id) + " '" + d->correlation_text +
                       "' " + std::to_string(d->priority) + " " + std::to_string(d->timeout_us) + " flags " +
                       std::to_string(r.flags) + " rows " + std::to_string(r.first_row) + "+" +
                       std::to_string(r.rows) + " deadline " + std::to_string(r.deadline_ns);
    for (int32_t p = 0; p < d->parameter_count; p++) {
      const core_parameter& each = d->parameters[p];
      text += std::string(" ") + each.name + "=" + (each.text ? each.text : "") + "," +
              std::to_string(each.integer) + "," + std::to_string(each.number);
    }
    for (int32_t o = 0; o < d->output_count; o++) text += std::string(" >") + d->outputs[o];
    batch->core->fail(batch->core->one(batch, i), CORE_INVALID, text.c_str());
  }
  return CORE_OK;
}

int32_t waits(void* self, core_batch* batch, char* error, size_t size) {
  inside = true;
  while (!go && !*batch->requests[0].cancelled) std::this_thread::yield();
  inside = false;
  if (*batch->requests[0].cancelled) return CORE_CANCELLED;
  return copy(self, batch, error, size);
}

void answer_later(const core_calls* core, std::vector<core_answer*> answers, std::vector<const core_tensor*> inputs,
                  int times) {
  while (!go) std::this_thread::yield();
  for (int t = 0; t < times; t++)
    for (size_t i = 0; i < answers.size(); i++) {
      const core_tensor& x = *inputs[i];
      void* y = core->output(answers[i], "y", x.dtype, x.shape, x.dimensions, x.byte_size);
      if (y && x.byte_size) memcpy(y, x.data, x.byte_size);
      sent = core->send(answers[i], t == times - 1);
    }
  for (core_answer* each : answers) {
    sent = core->send(each, 1);  // it has ended already
    core->release(each);
  }
}

template <int kTimes>
int32_t later(void*, core_batch* batch, char*, size_t) {
  std::vector<core_answer*> answers;
  std::vector<const core_tensor*> inputs;
  for (int32_t i = 0; i < batch->request_count; i++) {
    answers.push_back(batch->core->later(batch, i));
    inputs.push_back(&batch->requests[i].inputs[0]);
  }
  if (worker.joinable()) worker.join();
  worker = std::thread(answer_later, batch->core, answers, inputs, kTimes);
  return CORE_OK;
}

int32_t released_unanswered(void*, core_batch* batch, char*, size_t) {
  for (int32_t i = 0; i < batch->request_count; i++) batch->core->release(batch->core->later(batch, i));
  return CORE_OK;
}

int32_t first_later(void* self, core_batch* batch, char* error, size_t size) {
  core_answer* answer = batch->core->later(batch, 0);
  batch->core->fail(answer, CORE_NOT_FOUND, "later");
  batch->core->send(answer, 1);
  batch->core->release(answer);
  return copy(self, batch, error, size);
}

int32_t comes_again(void* self, core_batch* batch, char* error, size_t size) {
  static std::atomic<int> runs{0};
  if (runs++ % 3 != 2) return batch->core->reschedule(batch, 0);
  return copy(self, batch, error, size);
}

int32_t measures(void* self, core_batch* batch, char* error, size_t size) {
  static core_metric* counter = nullptr;
  const core_parameter label = {"kind", "test", 0, 0, CORE_TEXT, 0};
  const double buckets[] = {1, 10};
  if (!counter)
    counter = batch->core->metric(CORE_COUNTER, "players_batches", "Batches", &label, 1, nullptr, 0);
  batch->core->metric_add(counter, 2);
  core_metric* gauge = batch->core->metric(CORE_GAUGE, "players_gauge", "Gauge", nullptr, 0, nullptr, 0);
  core_metric* times = batch->core->metric(CORE_HISTOGRAM, "players_times", "Times", nullptr, 0, buckets, 2);
  if (batch->core->metric_set(gauge, 3) != CORE_OK || batch->core->metric_add(times, 5) != CORE_OK ||
      batch->core->metric_set(counter, 3) == CORE_OK || batch->core->metric_add(counter, -1) == CORE_OK)
    return CORE_INTERNAL;
  batch->core->metric_release(gauge);
  batch->core->metric_release(times);
  batch->core->log(CORE_LOG_WARNING, "a line of a native backend");
  return copy(self, batch, error, size);
}

int32_t times(void* self, core_batch* batch, char* error, size_t size) {
  batch->compute_start_ns = INT64_MIN;
  batch->compute_end_ns = INT64_MAX;
  return copy(self, batch, error, size);
}

void attach(void*, const core_calls* core) {
  calls = core;
  attached++;
}

const std::map<std::string, Execute> players = {
    {"copy", copy}, {"copy_each", copy_each}, {"give", give}, {"give_copied", give_copied},
    {"give_refused", give_refused}, {"undeclared", undeclared}, {"long_name", long_name}, {"no_name", no_name},
    {"other_dtype", other_dtype}, {"no_dtype", no_dtype}, {"other_rows", other_rows},
    {"negative_shape", negative_shape}, {"huge_shape", huge_shape}, {"too_large", too_large},
    {"negative_dimensions", negative_dimensions}, {"many_dimensions", many_dimensions}, {"no_shape", no_shape},
    {"other_size", other_size}, {"twice", twice}, {"no_data", no_data}, {"silent", silent}, {"fails", fails},
    {"breaks_off", breaks_off},
    {"fails_without_text", fails_without_text}, {"fails_without_end", fails_without_end},
    {"fails_in_no_language", fails_in_no_language}, {"fails_unheard_of", fails_unheard_of}, {"fatal", fatal},
    {"fails_first", fails_first}, {"nonsense", nonsense}, {"malformed_text", malformed_text},
    {"parameters", parameters}, {"details", details}, {"waits", waits}, {"later", later<1>},
    {"later_often", later<3>}, {"released_unanswered", released_unanswered}, {"first_later", first_later},
    {"comes_again", comes_again}, {"measures", measures}, {"times", times}};

}  // namespace

extern "C" {

__attribute__((visibility("default"))) core_instance* player(const char* name) {
  auto found = players.find(name);
  if (found == players.end()) return nullptr;
  auto* made = new core_instance{};
  made->abi_version = CORE_ABI_VERSION;
  made->struct_size = sizeof(core_instance);
  made->execute = found->second;
  made->attach = attach;
  if (found->first == "copy_each") made->flags = CORE_NOT_GATHERED;
  return made;
}

__attribute__((visibility("default"))) void player_done(core_instance* instance) { delete instance; }
__attribute__((visibility("default"))) int player_count(int which) {
  return which == 0 ? released.load() : which == 1 ? attached.load() : which == 2 ? inside.load() : sent.load();
}
__attribute__((visibility("default"))) void player_go(int now) {
  go = now;
  if (now && worker.joinable()) worker.join();
}
}
