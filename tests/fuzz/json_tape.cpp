// Any bytes as JSON: the tape never leaves the text and has no more items than it may; what it has read has as
// many values as its punctuation says, and elements that stay text fill exactly the room that they ask for. What
// the reader of inference takes, the tape takes too.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "frontends/http/native/infer_request.hpp"
#include "frontends/http/native/json_count.hpp"
#include "frontends/http/native/json_tape.hpp"

using namespace http_json;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void require_utf8(Text text) {
  const char* end = text.data + text.size;
  for (const char* at = text.data; at < end;) {
    const size_t length = static_cast<unsigned char>(*at) < 0x80 ? 1 : utf8_length(at, end);
    require(length > 0);
    at += length;
  }
}

char* nowhere(void* context, size_t size, void** memory) {
  auto& blocks = *static_cast<std::vector<std::unique_ptr<char[]>>*>(context);
  blocks.push_back(std::make_unique<char[]>(size));
  *memory = blocks.back().get();
  return blocks.back().get();
}

void require_room(const Item& item, const Summary& summary) {
  const char* begin = item.text.data;
  const char* end = begin + item.text.size;
  if (summary.depth > kMostDepth) return;
  if (summary.kinds == kHasText) {
    std::vector<char> room(4 * summary.leaves + summary.text_bytes);
    require(pack_strings(begin, end, summary.leaves, room.data()));
  }
  for (const DataType type : {DataType::kInt8, DataType::kUint64, DataType::kFp32, DataType::kFp64}) {
    const unsigned allowed = type < DataType::kFp16 ? kHasInteger : kHasInteger | kHasReal;
    if (summary.kinds == 0 || summary.kinds & ~allowed) continue;
    std::vector<char> room(summary.leaves * element_size(type));
    const char* wrong = first_outside(begin, end, type, summary.leaves, room.data());
    require(wrong == nullptr || (begin < wrong && wrong < end && (*wrong == '-' || is_digit(*wrong))));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // On the heap, so that a byte before or behind the text is found.
  std::vector<char> text(data, data + size);
  const size_t most = size % 2 ? 1 << 20 : 16;
  bool plain = false;
  for (const Plan plan : {Plan::kNone, Plan::kInference, Plan::kMembers}) {
    Tape tape;
    const Outcome outcome = tape.read(text.data(), text.size(), plan, most, 1 << 20);
    require(tape.items().size() <= most);
    require(outcome != Outcome::kMalformed || tape.position() <= size);
    if (outcome != Outcome::kRead) continue;
    if (plan == Plan::kNone) {
      plain = true;
      require(count_values(text.data(), text.data() + size) == tape.items().size());
    }
    for (const Item& item : tape.items()) {
      if (item.kind == ItemKind::kString) require_utf8(item.text);
      if (item.kind == ItemKind::kElements || item.kind == ItemKind::kLongText) {
        require_room(item, tape.summaries()[item.count]);
      }
    }
  }
  Request request;
  std::vector<std::unique_ptr<char[]>> blocks;
  const bool taken =
      RequestReader(text.data(), size, 1 << 16, Memory{nowhere, &blocks}, request).read();
  if (taken && most > size) require(plain);
  return 0;
}
