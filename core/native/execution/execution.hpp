// Execution: one batch as a native backend sees it (core_batch), and its answers. It uses no Python.
//
// For each batch, the caller calls begin, writes each tensor of each request, calls gather and run, and reads
// the answers until the next begin. Not thread-safe: one thread at a time.
#pragma once
#include <time.h>

#include "answer.hpp"

namespace core_native {

constexpr size_t kErrorSize = 1024;  // of the buffer for the error of execute

class Execution : public core_batch {
 public:
  Execution(std::shared_ptr<const Contract> contract, std::shared_ptr<Pool> pool, const core_calls* calls)
      : core_batch{}, contract_(std::move(contract)), pool_(std::move(pool)) {
    struct_size = sizeof(core_batch);
    has_rows = contract_->has_rows;
    core = calls;
    together_ = answer(-1);
    together_.is_whole = true;
    all = &together_;
  }

  std::vector<Target> targets;  // written by the caller
  void* owner = nullptr;        // object of the caller

  // Begin a batch of `count` requests with `kinds` inputs each, and forget the previous one.
  void begin(int32_t count, int32_t kinds) {
    request_count = count;
    input_count = kinds;
    rows = 0;
    compute_start_ns = compute_end_ns = 0;
    const size_t all_tensors = size_t(kinds) * (size_t(count) + 1);
    tensors_.assign(all_tensors, core_tensor{});
    requests_.assign(size_t(count), core_request{});
    answers_.clear();
    answers_.resize(size_t(count));
    rescheduled_.clear();
    targets.clear();
    gathered_.clear();
    more_shapes_.clear();
    used_ = 0;
    if (shapes_.size() < all_tensors * 4) shapes_.resize(all_tensors * 4);
    together_.clear();
    inputs = tensors_.data();
    requests = requests_.data();
    for (int32_t i = 0; i < count; i++)
      requests_[i].inputs = tensors_.data() + size_t(kinds) * (size_t(i) + 1);
  }

  core_request& request(int32_t i) { return requests_[i]; }

  // Input `k` of request `i`.
  core_tensor& piece(int32_t i, int32_t k) {
    return tensors_[size_t(input_count) * (size_t(i) + 1) + size_t(k)];
  }

  // Return memory for the shape of one tensor, valid until the next `begin`.
  int64_t* shape(int32_t dimensions) {
    const size_t needed = size_t(dimensions);
    if (used_ + needed > shapes_.size()) {
      more_shapes_.emplace_back(new int64_t[needed]);
      return more_shapes_.back().get();
    }
    int64_t* made = shapes_.data() + used_;
    used_ += needed;
    return made;
  }

  // Set the inputs of the whole batch, with copies if needed. On failure return false, and set `why`.
  //
  // ragged   for each input, whether requests may differ in its shape
  // copied   whether to copy an input of several requests into one buffer; otherwise its data is null
  bool gather(const std::vector<char>& ragged, bool copied, std::string* why) {
    for (int32_t k = 0; k < input_count; k++)
      if (!gather(k, ragged[size_t(k)], copied, why)) return false;
    return true;
  }

  // Call the backend. Return its status, or that of a failed batch->all; set `text` to the error text.
  int32_t run(const core_instance& instance, std::string* text) {
    char error[kErrorSize] = {0};
    together_.rows = rows;
    together_.request = request_count == 1 ? 0 : -1;  // then its client's memory may be used
    together_.cancelled = requests_[0].cancelled;
    int32_t status = instance.execute(instance.self, this, error, sizeof error - 1);
    if (status != CORE_OK && (status < 0 || status > CORE_FATAL)) status = CORE_INTERNAL;
    error[sizeof error - 1] = 0;
    *text = error;
    if (together_.failed && text->empty()) *text = together_.text;
    return status == CORE_OK ? together_.failed : status;
  }

  core_answer& together() { return together_; }

  // The answer to request `i` alone, or the marker of `later` and `reschedule`; nullptr if there is none.
  core_answer* own(int32_t i) { return answers_[size_t(i)].get(); }

  // The answer to request `i` alone, created once; nullptr without such a request, or if it has a marker.
  core_answer* one(int32_t i) {
    if (i < 0 || i >= request_count) return nullptr;
    std::unique_ptr<core_answer>& place = answers_[size_t(i)];
    if (!place) {
      place.reset(new core_answer(answer(i)));
      place->touched = true;
    }
    return place->is_later ? nullptr : place.get();
  }

  // A new answer that outlives the batch and that the caller owns; the batch keeps a marker. nullptr without
  // such a request, or if it has an answer or a marker.
  core_answer* later(int32_t i) {
    if (i < 0 || i >= request_count || answers_[size_t(i)]) return nullptr;
    std::unique_ptr<core_answer> made(new core_answer(answer(i)));
    answers_[size_t(i)].reset(new core_answer(answer(-1)));
    answers_[size_t(i)]->is_later = true;
    made->is_later = true;
    return made.release();
  }

  bool reschedule(int32_t i) {
    if (i < 0 || i >= request_count || answers_[size_t(i)]) return false;
    answers_[size_t(i)].reset(new core_answer(answer(-1)));
    answers_[size_t(i)]->is_later = true;
    rescheduled_.push_back(i);
    return true;
  }

  const std::vector<int32_t>& rescheduled() const { return rescheduled_; }

  // Set `found` to the byte offsets of the requests' parts in a common output: request_count + 1 numbers.
  // Return false for a BYTES output whose elements do not fit its shape.
  bool offsets(const Output& output, std::vector<uint64_t>* found) const {
    found->assign(1, 0);
    const int64_t count = elements(output.shape, output.dimensions);
    const bool is_text = contract_->outputs[size_t(output.index)].dtype == CORE_BYTES;
    const int64_t row = rows ? count / rows : 0;
    uint64_t at = 0;
    for (int32_t i = 0; i < request_count; i++) {
      const int64_t wanted = request_count == 1 ? count : row * requests_[size_t(i)].rows;
      if (is_text) {
        const int64_t size = bytes_of(output.data + at, output.size - at, wanted);
        if (size < 0) return false;
        at += uint64_t(size);
      } else {
        at += uint64_t(wanted) * (count ? output.size / uint64_t(count) : 0);
      }
      found->push_back(at);
    }
    return at == output.size;
  }

  const Contract& contract() const { return *contract_; }

 private:
  core_answer answer(int32_t i) const {
    core_answer made;
    made.contract = contract_.get();
    made.pool = pool_;
    made.targets = &targets;
    made.rows = -1;
    made.request = i;
    if (i >= 0) made.cancelled = requests_[size_t(i)].cancelled;
    return made;
  }

  bool gather(int32_t k, bool ragged, bool copied, std::string* why) {
    core_tensor& whole = tensors_[size_t(k)];
    const core_tensor& first = piece(0, k);
    const uint64_t element = core_element_size(first.dtype);
    uint64_t size = 0;
    int64_t count = 0, rows_of_all = 0;
    for (int32_t i = 0; i < request_count; i++) {
      const core_tensor& each = piece(i, k);
      const int64_t number = elements(each.shape, each.dimensions);
      if (number < 0 || each.dtype != first.dtype || (element && uint64_t(number) * element != each.byte_size) ||
          (!ragged && i && !alike(first, each)))
        return misfit(k, each, why);
      size += each.byte_size;
      count += number;
      rows_of_all += each.dimensions ? each.shape[0] : 0;
    }
    whole = first;
    whole.byte_size = size;
    if (ragged) {
      int64_t* flat = shape(whole.dimensions = 1);
      flat[0] = count;
      whole.shape = flat;
    } else if (request_count > 1) {
      int64_t* joined = shape(whole.dimensions);
      memcpy(joined, first.shape, sizeof(int64_t) * size_t(whole.dimensions));
      joined[0] = rows_of_all;
      whole.shape = joined;
    }
    // One request needs no copy, unless its bytes are not aligned.
    if (request_count == 1 && (element < 2 || !(reinterpret_cast<uintptr_t>(whole.data) % element)))
      return true;
    if (request_count > 1) whole.data = nullptr;
    return copied && size ? copy(k, whole, why) : true;
  }

  static bool alike(const core_tensor& one, const core_tensor& other) {
    return one.dimensions == other.dimensions && one.dimensions > 0 &&
           !memcmp(one.shape + 1, other.shape + 1, sizeof(int64_t) * size_t(one.dimensions - 1));
  }

  bool misfit(int32_t k, const core_tensor& each, std::string* why) const {
    const core_tensor& first = tensors_[size_t(input_count) + size_t(k)];
    *why = "input '" + std::string(first.name) + "' with shape " +
           shape_text(each.shape, each.dimensions) + " and " + std::to_string(each.byte_size) +
           " bytes does not fit its batch, which begins with shape " +
           shape_text(first.shape, first.dimensions) + " of " + dtype_name(first.dtype);
    return false;
  }

  bool copy(int32_t k, core_tensor& whole, std::string* why) {
    std::unique_ptr<Block> block = Block::of(pool_, whole.byte_size);
    if (!block) {
      *why = "no memory for the " + std::to_string(whole.byte_size) + " bytes of a batch";
      return false;
    }
    char* to = block->data;
    for (int32_t i = 0; i < request_count; i++) {
      const core_tensor& each = piece(i, k);
      if (each.byte_size) memcpy(to, each.data, each.byte_size);
      to += each.byte_size;
    }
    whole.data = block->data;
    gathered_.push_back(std::move(block));
    return true;
  }

  std::shared_ptr<const Contract> contract_;
  std::shared_ptr<Pool> pool_;
  std::vector<core_tensor> tensors_;  // the gathered ones, then those of each request
  std::vector<core_request> requests_;
  std::vector<int64_t> shapes_;
  size_t used_ = 0;  // of them
  std::vector<std::unique_ptr<int64_t[]>> more_shapes_;
  std::vector<std::unique_ptr<Block>> gathered_;
  core_answer together_;
  std::vector<std::unique_ptr<core_answer>> answers_;
  std::vector<int32_t> rescheduled_;
};

}  // namespace core_native
