// Plays the native backends of players.cpp without Python, so that sanitizers see every byte: batches of all
// sorts for each of them that needs no Python, and outputs taken as executor.pyx takes them.
#include "core/native/execution/calls.hpp"
#include "players.cpp"

namespace {

using core_native::Contract;
using core_native::Execution;
using core_native::Output;
using core_native::Pool;

struct Made {
  std::vector<std::vector<char>> bytes;  // exactly as long as the tensors: one byte more is a finding
  std::vector<int> cancelled;
};

void fill(Execution* execution, int32_t count, int32_t dtype, int64_t columns, bool odd, Made* made) {
  execution->begin(count, 1);
  made->bytes.clear();
  made->cancelled.assign(size_t(count), 0);
  for (int32_t i = 0; i < count; i++) {
    const int64_t rows = 1 + i % 3;
    core_request& request = execution->request(i);
    request.first_row = execution->rows;
    request.rows = rows;
    request.cancelled = &made->cancelled[size_t(i)];
    execution->rows += rows;
    const int64_t number = rows * columns;
    std::vector<char> bytes;
    if (dtype == CORE_BYTES)
      for (int64_t e = 0; e < number; e++) {
        const uint32_t length = uint32_t(e % 5);
        bytes.insert(bytes.end(), reinterpret_cast<const char*>(&length), reinterpret_cast<const char*>(&length + 1));
        bytes.insert(bytes.end(), length, 'b');
      }
    else
      bytes.assign(size_t(number) * core_element_size(dtype) + (odd && i ? 1 : 0), char(i));
    made->bytes.push_back(std::move(bytes));
    core_tensor& piece = execution->piece(i, 0);
    piece.name = "x";
    piece.dtype = dtype;
    piece.device_kind = CORE_CPU;
    piece.dimensions = 2;
    int64_t* shape = execution->shape(2);
    shape[0] = rows;
    shape[1] = columns;
    piece.shape = shape;
    piece.data = made->bytes.back().data();
    piece.byte_size = made->bytes.back().size();
  }
}

uint64_t take(Execution* execution, core_answer* answer) {
  uint64_t sum = 0;
  for (Output& output : answer->outputs) {
    std::vector<uint64_t> offsets;
    if (execution->offsets(output, &offsets) && offsets.back() > output.size) abort();
    std::unique_ptr<core_native::Block> kept = std::move(output.block);
    if (kept && output.size) sum += std::string(kept->data, output.size).size();
  }
  return sum;
}

}  // namespace

int main() {
  auto contract = std::make_shared<Contract>();
  contract->model = "example";
  contract->has_rows = true;
  const core_calls calls = core_native::calls_without_python();
  int batches = 0;
  for (const auto& [name, execute] : players) {
    // These wait for somebody, or cannot do without Python.
    if (name.find("later") != std::string::npos || name == "waits" || name == "details" || name == "measures" ||
        name == "released_unanswered")
      continue;
    for (int32_t dtype : {CORE_FP32, CORE_BYTES}) {
      contract->outputs = {{"y", dtype}};
      Execution execution(contract, std::make_shared<Pool>(), &calls);
      Made made;
      for (int32_t count : {1, 4})
        for (int64_t columns : {0, 3, 3'000})
          for (bool odd : {false, true}) {
            core_instance* instance = player(name.c_str());
            fill(&execution, count, dtype, columns, odd, &made);
            std::vector<char> room(size_t(columns) * 4 + 1);
            execution.targets.push_back({0, 0, room.data(), room.size()});
            std::string text;
            if (execution.gather({0}, !(instance->flags & CORE_NOT_GATHERED), &text))
              execution.run(*instance, &text);
            take(&execution, &execution.together());
            for (int32_t i = 0; i < count; i++)
              if (execution.own(i)) take(&execution, execution.own(i));
            player_done(instance);
            batches++;
          }
    }
  }
  printf("%d batches\n", batches);
  return 0;
}
