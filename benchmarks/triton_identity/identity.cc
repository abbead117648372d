// The smallest backend of Triton that copies its only input to its only output.
//
// tritonserver ─► TRITONBACKEND_ModelInstanceExecute ─► responses.  It returns INPUT0 of any datatype and shape
// as OUTPUT0. A batch has several requests; each gets a separate response. System memory only. Triton's own
// identity backend does more (states, delays, GPUs); this one has the minimum cost of a backend, so that the
// benchmark measures the server.
//
// The declarations below are the used part of the public C interface, so that a build needs no header of
// Triton. Any thread of an instance may call; calls of one instance never overlap.

#include <cstdint>
#include <cstring>
#include <ctime>

extern "C" {

struct TRITONSERVER_Error;
struct TRITONBACKEND_Input;
struct TRITONBACKEND_ModelInstance;
struct TRITONBACKEND_Output;
struct TRITONBACKEND_Request;
struct TRITONBACKEND_Response;

enum TRITONSERVER_Error_Code : int { ERROR_INTERNAL = 1, ERROR_UNSUPPORTED = 5 };
enum TRITONSERVER_DataType : int { DATATYPE_INVALID = 0 };
enum TRITONSERVER_MemoryType : int { MEMORY_CPU = 0, MEMORY_CPU_PINNED = 1, MEMORY_GPU = 2 };

TRITONSERVER_Error* TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char* message);
void TRITONSERVER_ErrorDelete(TRITONSERVER_Error* error);

TRITONSERVER_Error* TRITONBACKEND_RequestInputByIndex(
    TRITONBACKEND_Request* request, uint32_t index, TRITONBACKEND_Input** input);
TRITONSERVER_Error* TRITONBACKEND_InputProperties(
    TRITONBACKEND_Input* input, const char** name, TRITONSERVER_DataType* datatype,
    const int64_t** shape, uint32_t* dims_count, uint64_t* byte_size, uint32_t* buffer_count);
TRITONSERVER_Error* TRITONBACKEND_InputBuffer(
    TRITONBACKEND_Input* input, uint32_t index, const void** buffer, uint64_t* byte_size,
    TRITONSERVER_MemoryType* memory_type, int64_t* memory_type_id);
TRITONSERVER_Error* TRITONBACKEND_ResponseNew(
    TRITONBACKEND_Response** response, TRITONBACKEND_Request* request);
TRITONSERVER_Error* TRITONBACKEND_ResponseOutput(
    TRITONBACKEND_Response* response, TRITONBACKEND_Output** output, const char* name,
    TRITONSERVER_DataType datatype, const int64_t* shape, uint32_t dims_count);
TRITONSERVER_Error* TRITONBACKEND_OutputBuffer(
    TRITONBACKEND_Output* output, void** buffer, uint64_t byte_size,
    TRITONSERVER_MemoryType* memory_type, int64_t* memory_type_id);
TRITONSERVER_Error* TRITONBACKEND_ResponseSend(
    TRITONBACKEND_Response* response, uint32_t send_flags, TRITONSERVER_Error* error);
TRITONSERVER_Error* TRITONBACKEND_RequestRelease(
    TRITONBACKEND_Request* request, uint32_t release_flags);
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportStatistics(
    TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request* request, bool success,
    uint64_t exec_start_ns, uint64_t compute_start_ns, uint64_t compute_end_ns,
    uint64_t exec_end_ns);
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportBatchStatistics(
    TRITONBACKEND_ModelInstance* instance, uint64_t batch_size, uint64_t exec_start_ns,
    uint64_t compute_start_ns, uint64_t compute_end_ns, uint64_t exec_end_ns);

}  // extern "C"

namespace {

constexpr uint32_t RESPONSE_FINAL = 1;
constexpr uint32_t RELEASE_ALL = 1;

uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

// Free an error that cannot be handled.
void drop(TRITONSERVER_Error* error) {
  if (error != nullptr) TRITONSERVER_ErrorDelete(error);
}

// Copy input 0 of `request` into output OUTPUT0 of `response`; return the error, or null.
TRITONSERVER_Error* copy(TRITONBACKEND_Request* request, TRITONBACKEND_Response* response) {
  TRITONBACKEND_Input* input;
  if (auto* error = TRITONBACKEND_RequestInputByIndex(request, 0, &input)) return error;
  const char* name;
  TRITONSERVER_DataType datatype;
  const int64_t* shape;
  uint32_t dims_count, buffer_count;
  uint64_t byte_size;
  if (auto* error = TRITONBACKEND_InputProperties(
          input, &name, &datatype, &shape, &dims_count, &byte_size, &buffer_count))
    return error;
  TRITONBACKEND_Output* output;
  if (auto* error = TRITONBACKEND_ResponseOutput(
          response, &output, "OUTPUT0", datatype, shape, dims_count))
    return error;
  void* to;
  TRITONSERVER_MemoryType memory = MEMORY_CPU;
  int64_t memory_id = 0;
  if (auto* error = TRITONBACKEND_OutputBuffer(output, &to, byte_size, &memory, &memory_id))
    return error;
  if (memory == MEMORY_GPU)
    return TRITONSERVER_ErrorNew(ERROR_UNSUPPORTED, "identity: the output is in a GPU's memory");
  char* at = static_cast<char*>(to);
  for (uint32_t index = 0; index < buffer_count; ++index) {
    const void* from;
    uint64_t size;
    if (auto* error =
            TRITONBACKEND_InputBuffer(input, index, &from, &size, &memory, &memory_id))
      return error;
    if (memory == MEMORY_GPU)
      return TRITONSERVER_ErrorNew(ERROR_UNSUPPORTED, "identity: the input is in a GPU's memory");
    std::memcpy(at, from, size);
    at += size;
  }
  return nullptr;
}

}  // namespace

// Answer each request and release it to the server, which owns it again after that; also failed requests,
// since an error from this function would leave all requests to the server.
extern "C" TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(
    TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request** requests,
    const uint32_t request_count) {
  const uint64_t start = now_ns();
  for (uint32_t index = 0; index < request_count; ++index) {
    TRITONBACKEND_Request* request = requests[index];
    TRITONBACKEND_Response* response = nullptr;
    TRITONSERVER_Error* error = TRITONBACKEND_ResponseNew(&response, request);
    const bool made = error == nullptr;
    if (made) error = copy(request, response);
    const bool success = error == nullptr;
    if (made) drop(TRITONBACKEND_ResponseSend(response, RESPONSE_FINAL, error));
    drop(error);
    const uint64_t end = now_ns();
    drop(TRITONBACKEND_ModelInstanceReportStatistics(
        instance, request, success, start, start, end, end));
    drop(TRITONBACKEND_RequestRelease(request, RELEASE_ALL));
  }
  const uint64_t end = now_ns();
  // The requests of these benchmarks have one row each.
  drop(TRITONBACKEND_ModelInstanceReportBatchStatistics(
      instance, request_count, start, start, end, end));
  return nullptr;
}
