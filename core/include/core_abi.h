/* core_abi.h: the binary interface between core and native backends, which are built separately. C99, C++11.
 *
 * A backend's Python ModelInstance sets its attribute `native` to a capsule named CORE_INSTANCE_CAPSULE while
 * it opens. The capsule holds a core_instance. Core then calls core_instance.execute instead of the Python
 * method: once for each batch, on the instance's thread, WITHOUT Python's GIL.
 *
 *     static int32_t negate(void *self, core_batch *batch, char *error, size_t error_size) {
 *       const core_tensor *x = core_input(batch, "x");
 *       float *y = batch->core->output(batch->all, "y", x->dtype, x->shape, x->dimensions, 0);
 *       if (!y) return CORE_INTERNAL;                        // core has the reason
 *       for (uint64_t i = 0; i < x->byte_size / 4; i++) y[i] = -((const float *)x->data)[i];
 *       return CORE_OK;
 *     }
 *
 * Versions. CORE_ABI_VERSION grows with every incompatible change. Core refuses to load a backend that was
 * built for another version; the error names the backend. Within a version, structs with a struct_size grow
 * at their end only: core reads at most the backend's struct_size, and a backend checks
 * CORE_HAS(core, member) before it uses a later member. The other structs do not grow.
 *
 * Threads. The arguments of execute may be used by the instance's thread until execute returns, or by one
 * other thread at a time for which it waits. Answers of core_calls.later may be used by any thread, one at a
 * time for each answer, also after execute has returned. No call needs the GIL. Calls marked "takes the
 * GIL" take it themselves: do not make them while holding a lock that a holder of the GIL may wait for.
 *
 * Pointers from core are valid until execute returns; if a batch has answers of `later`, until the last of
 * them is released. Text is UTF-8 and ends with a zero byte.
 */
#ifndef CORE_ABI_H
#define CORE_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CORE_ABI_VERSION 1
#define CORE_INSTANCE_CAPSULE "core.instance"
#define CORE_MOST_DIMENSIONS 32 /* of an output */

/* Whether the struct behind a pointer contains a member, according to its struct_size. */
#define CORE_HAS(object, member) \
  ((const char *)(&(object)->member + 1) - (const char *)(object) <= (ptrdiff_t)(object)->struct_size)

/* Status that a call returns, and kind of an error. Core treats any other value as CORE_INTERNAL. */
enum core_status {
  CORE_OK = 0,
  CORE_INTERNAL = 1,
  CORE_NOT_FOUND = 2,
  CORE_INVALID = 3,
  CORE_UNAVAILABLE = 4,
  CORE_UNSUPPORTED = 5,
  CORE_ALREADY_EXISTS = 6,
  CORE_CANCELLED = 7,
  CORE_UNKNOWN = 8,
  CORE_FATAL = 9 /* of execute: the batch fails and the instance leaves service */
};

/* Datatypes: the numbers of model_config.proto. */
enum core_dtype {
  CORE_BOOL = 1,
  CORE_UINT8 = 2,
  CORE_UINT16 = 3,
  CORE_UINT32 = 4,
  CORE_UINT64 = 5,
  CORE_INT8 = 6,
  CORE_INT16 = 7,
  CORE_INT32 = 8,
  CORE_INT64 = 9,
  CORE_FP16 = 10,
  CORE_FP32 = 11,
  CORE_FP64 = 12,
  CORE_BYTES = 13, /* each element: uint32 length, little endian, then its bytes */
  CORE_BF16 = 14
};

/* Kinds of devices, as in DLPack. Inputs from core and outputs for core are in host memory. */
enum core_device { CORE_CPU = 1, CORE_CUDA = 2, CORE_CUDA_HOST = 3 };

typedef struct core_tensor {
  const char *name;
  const void *data; /* row-major, read-only; NULL if there are no bytes, or if they are not gathered */
  const int64_t *shape;
  uint64_t byte_size;
  int32_t dtype;
  int32_t dimensions; /* of shape; 0 for a scalar */
  int32_t device_kind;
  int32_t device_id;
} core_tensor;

enum core_parameter_kind { CORE_TEXT = 1, CORE_INTEGER = 2, CORE_BOOLEAN = 3, CORE_NUMBER = 4 };

typedef struct core_parameter {
  const char *name;
  const char *text; /* CORE_TEXT */
  int64_t integer;  /* CORE_INTEGER; CORE_BOOLEAN: 0 or 1 */
  double number;    /* CORE_NUMBER */
  int32_t kind;
  int32_t reserved; /* 0 */
} core_parameter;

enum core_request_flags { CORE_SEQUENCE_START = 1, CORE_SEQUENCE_END = 2 };

typedef struct core_request {
  int64_t first_row; /* of the batch, for a model with a batch dimension */
  int64_t rows;
  const core_tensor *inputs; /* of this request, in the order of core_batch.inputs */
  int64_t deadline_ns;       /* of CLOCK_MONOTONIC: the client waits no longer; 0 for none */
  const volatile int *cancelled; /* not 0 once the request is cancelled */
  uint32_t flags;
  uint32_t reserved;
} core_request;

/* Properties of a request besides its inputs: id, sequence, priority, parameters, requested outputs. */
typedef struct core_details {
  uint32_t struct_size;
  int32_t parameter_count;
  int32_t output_count; /* 0: the client wants all outputs */
  int32_t reserved;
  const char *id; /* "" for none */
  uint64_t correlation_id;      /* of a sequence; 0 for none, or for one that is text */
  const char *correlation_text; /* of a sequence; "" if the id is a number */
  uint64_t priority;            /* 1 is the highest, 0 the model's default */
  uint64_t timeout_us;          /* in the queue; 0 for none */
  const core_parameter *parameters;
  const char *const *outputs; /* names */
} core_details;

typedef struct core_answer core_answer; /* response: outputs or an error, for a whole batch or one request */
typedef struct core_metric core_metric;
typedef struct core_calls core_calls;

typedef struct core_batch {
  uint32_t struct_size;
  int32_t request_count; /* 1 or more */
  int32_t input_count;
  int32_t has_rows; /* whether the model has a batch dimension: the first dimension of every tensor */
  int64_t rows;     /* of all requests */
  /* Inputs with the rows of all requests, in the order of the configuration, then controls and states of a
   * sequence. Optional inputs that the requests omit are absent. A ragged input has one dimension: the
   * elements of all requests, one request after the other. */
  const core_tensor *inputs;
  const core_request *requests;
  core_answer *all; /* outputs with the rows of all requests, which core splits */
  const core_calls *core;
  /* Times for statistics, set by the backend in CLOCK_MONOTONIC: its inputs are in place, and its
   * computation has ended. 0: core uses its own measurement around execute. */
  int64_t compute_start_ns;
  int64_t compute_end_ns;
} core_batch;

enum core_instance_flags {
  CORE_NOT_GATHERED = 1 /* core does not concatenate the inputs of several requests: `data` is NULL */
};

/* An instance of a model. The backend zeroes the struct, fills it, and keeps it as long as the capsule. */
typedef struct core_instance {
  uint32_t abi_version; /* CORE_ABI_VERSION */
  uint32_t struct_size; /* sizeof(core_instance) */
  uint64_t flags;       /* of core_instance_flags */
  void *self;           /* first argument of each call */
  /* Answer the requests of a batch. CORE_OK: each request without its own answer gets its part of
   * batch->all; if that is empty, it gets an error, or no response from a decoupled model. Other values: the
   * requests without a final response get an error of that kind, also those of `later` and `reschedule`. Its
   * text is what execute has written to `error` (error_size bytes, filled with zeros before), else the reason
   * why core refused an output, else a default text. Calls for one instance never overlap. Must not throw. */
  int32_t (*execute)(void *self, core_batch *batch, char *error, size_t error_size);
  /* Called once, before the first batch, on the thread that opens the instance; may be NULL. The caller
   * holds the GIL. `core` is valid for the lifetime of the process. */
  void (*attach)(void *self, const core_calls *core);
} core_instance;

enum core_metric_kind { CORE_COUNTER = 1, CORE_GAUGE = 2, CORE_HISTOGRAM = 3 };
enum core_log_level { CORE_LOG_VERBOSE = 1, CORE_LOG_INFO = 2, CORE_LOG_WARNING = 3, CORE_LOG_ERROR = 4 };

/* Functions of core that a backend calls. For a NULL answer or batch they return NULL or CORE_INVALID;
 * has_room returns 1, is_cancelled 0. */
struct core_calls {
  uint32_t abi_version;
  uint32_t struct_size;

  /* Return uninitialised memory for an output; not NULL for an output of 0 bytes. It is aligned to 64 bytes
   * in host memory, or to the client's offset in shared memory. If the client wants the output in shared
   * memory, core returns that memory if possible, and copies nothing later.
   *   byte_size   of the wire form for CORE_BYTES; else 0, or the size of datatype and shape
   * NULL if core refuses the output (name or datatype not in the configuration, no shape, wrong number of
   * rows, given twice, no memory): the answer then becomes an error with the reason. */
  void *(*output)(core_answer *answer, const char *name, int32_t dtype, const int64_t *shape,
                  int32_t dimensions, uint64_t byte_size);

  /* Add an output whose bytes are in memory of the backend. Core reads the memory until it calls
   * release(argument): once, on any thread, without the GIL, also if it refuses the output (not CORE_OK).
   * With release NULL core copies the bytes before the call returns. */
  int32_t (*give)(core_answer *answer, const char *name, int32_t dtype, const int64_t *shape,
                  int32_t dimensions, const void *data, uint64_t byte_size,
                  void (*release)(void *argument), void *argument);

  /* Add a parameter to the response; core copies it. Not for batch->all. */
  int32_t (*parameter)(core_answer *answer, const core_parameter *parameter);

  /* Make the answer an error of that kind; later errors have no effect. Core copies `text`; NULL is valid. */
  int32_t (*fail)(core_answer *answer, int32_t kind, const char *text);

  /* Return the answer to one request, which replaces its part of batch->all. Core sends it when execute has
   * returned. Each call returns the same answer; NULL without such a request, or after `later` or
   * `reschedule` for it. */
  core_answer *(*one)(core_batch *batch, int32_t request);

  /* Return the object for the answers to one request, which `send` sends during execute or after it, several
   * for a decoupled model. The backend must release it. NULL if there is no such request, or after `one`,
   * `later` or `reschedule` for it. Takes the GIL. */
  core_answer *(*later)(core_batch *batch, int32_t request);

  /* Send the content of an answer of `later`: outputs and parameters, or the error. It is empty afterwards,
   * for the next answer. `final`: this is the last answer; an empty final answer only ends the answers. Not
   * CORE_OK for an answer that is not of `later`, or has ended. Takes the GIL. */
  int32_t (*send)(core_answer *answer, int32_t final);

  /* Release an answer of `later`, once. This ends an answer that has not ended: for a decoupled model there
   * are no more answers, for another model it is an error. Takes the GIL. */
  void (*release)(core_answer *answer);

  /* For an answer of `later`: has_room is 0 while the client is behind (wait before sending more), else 1;
   * is_cancelled is 1 if the request is cancelled, else 0. */
  int32_t (*has_room)(const core_answer *answer);
  int32_t (*is_cancelled)(const core_answer *answer);

  /* Put the request back into the queue after execute, for a later batch. CORE_INVALID if there is no such
   * request, or after `one`, `later` or `reschedule` for it. */
  int32_t (*reschedule)(core_batch *batch, int32_t request);

  /* Return id, parameters, wanted outputs and more; NULL if there is no such request. The first call for each
   * request takes the GIL. */
  const core_details *(*details)(core_batch *batch, int32_t request);

  /* Return the time of CLOCK_MONOTONIC in nanoseconds. */
  int64_t (*now_ns)(void);

  /* Write a line to the server's log. Takes the GIL. */
  void (*log)(int32_t level, const char *text);

  /* Return a metric that the server exposes. Labels are CORE_TEXT parameters; buckets are ascending, for a
   * histogram only. NULL if it is refused; the log has the reason. All four calls take the GIL.
   * metric_add adds to a counter or gauge, and observes a value of a histogram; metric_set sets a gauge. */
  core_metric *(*metric)(int32_t kind, const char *name, const char *help, const core_parameter *labels,
                         int32_t label_count, const double *buckets, int32_t bucket_count);
  int32_t (*metric_add)(core_metric *metric, double value);
  int32_t (*metric_set)(core_metric *metric, double value);
  void (*metric_release)(core_metric *metric);
};

/* Return the input of that name from batch->inputs; NULL if the batch has none. */
static inline const core_tensor *core_input(const core_batch *batch, const char *name) {
  for (int32_t i = 0; i < batch->input_count; i++)
    if (!strcmp(batch->inputs[i].name, name)) return &batch->inputs[i];
  return NULL;
}

/* Return the size of one element in bytes; 0 for CORE_BYTES and for an unknown datatype. */
static inline uint64_t core_element_size(int32_t dtype) {
  static const uint8_t sizes[15] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 0, 2};
  return dtype > 0 && dtype < 15 ? sizes[dtype] : 0;
}

/* Find the next element of a BYTES tensor. *at starts at the tensor's data and moves past the element;
 * *element and *size describe the element, without a copy. Return 1, or 0 if no complete element is left. */
static inline int core_next_bytes(const char **at, const char *end, const char **element, uint32_t *size) {
  const uint8_t *head = (const uint8_t *)*at;
  if (end - *at < 4) return 0;
  *size = head[0] | (uint32_t)head[1] << 8 | (uint32_t)head[2] << 16 | (uint32_t)head[3] << 24;
  if ((uint64_t)(end - *at) - 4 < *size) return 0;
  *element = *at + 4;
  *at += 4 + (size_t)*size;
  return 1;
}

#ifdef __cplusplus
}
#endif

#endif
