/* core_abi.h: the agreement between core and native backends, which are built apart from it. C99, C++11.
 *
 * A backend's Python ModelInstance puts a capsule named CORE_INSTANCE_CAPSULE into its attribute `native`
 * while it opens. The capsule holds a core_instance; from then on core calls core_instance.execute in the
 * place of the Python method: once for a batch, on the instance's thread, WITHOUT Python's GIL.
 *
 *     static int32_t negate(void *self, core_batch *batch, char *error, size_t error_size) {
 *       const core_tensor *x = core_input(batch, "x");
 *       float *y = batch->core->output(batch->all, "y", x->dtype, x->shape, x->dimensions, 0);
 *       if (!y) return CORE_INTERNAL;                        // core knows why
 *       for (uint64_t i = 0; i < x->byte_size / 4; i++) y[i] = -((const float *)x->data)[i];
 *       return CORE_OK;
 *     }
 *
 * Versions. CORE_ABI_VERSION grows with every change that an old backend could not survive; a backend
 * that was built for another one is refused at load, by name. Within a version, structs with a
 * struct_size grow at their end only: core reads no further than the backend's, a backend that uses a
 * member which came later asks CORE_HAS(core, member) first. The other structs do not grow.
 *
 * Threads. What is handed to execute may be used by the instance's thread, or by one thread at a time
 * that it waits for, until execute returns. Answers made by core_calls.later may be used by any thread,
 * one at a time for each answer, also after execute has returned. No call needs the GIL; those that
 * take it for themselves say so ("takes the GIL"), and must not be made while holding a lock that is
 * elsewhere taken by a holder of the GIL.
 *
 * Pointers that core gives stay valid until execute returns, for a batch of which answers are made
 * `later` until the last of those is released. Text is UTF-8, ended by a zero byte.
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

/* Whether a struct that begins with or has a struct_size is long enough to hold a member. */
#define CORE_HAS(object, member) \
  ((const char *)(&(object)->member + 1) - (const char *)(object) <= (ptrdiff_t)(object)->struct_size)

/* What a call has come to. Negative values and others that are not here count as CORE_INTERNAL. */
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

/* Kinds of devices, as in DLPack. Core gives inputs and takes outputs in host memory. */
enum core_device { CORE_CPU = 1, CORE_CUDA = 2, CORE_CUDA_HOST = 3 };

typedef struct core_tensor {
  const char *name;
  const void *data; /* row-major, read only; NULL where there are no bytes, or not gathered ones */
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
  const core_tensor *inputs; /* its own, each at the place that it has in core_batch.inputs */
  int64_t deadline_ns;       /* of CLOCK_MONOTONIC: nobody waits for longer; 0 for none */
  const volatile int *cancelled; /* not 0 as soon as nobody waits any more */
  uint32_t flags;
  uint32_t reserved;
} core_request;

/* What few backends ask of a request. */
typedef struct core_details {
  uint32_t struct_size;
  int32_t parameter_count;
  int32_t output_count; /* 0: the client wants all outputs */
  int32_t reserved;
  const char *id; /* "" for none */
  uint64_t correlation_id;      /* of a sequence; 0 for none, or for one that is text */
  const char *correlation_text; /* "" for one that is a number */
  uint64_t priority;            /* 1 is the highest, 0 the model's default */
  uint64_t timeout_us;          /* in the queue; 0 for none */
  const core_parameter *parameters;
  const char *const *outputs; /* names */
} core_details;

typedef struct core_answer core_answer; /* to all requests of a batch, or to one: outputs, or an error */
typedef struct core_metric core_metric;
typedef struct core_calls core_calls;

typedef struct core_batch {
  uint32_t struct_size;
  int32_t request_count; /* 1 or more */
  int32_t input_count;
  int32_t has_rows; /* whether the model has a batch dimension: the first of every tensor */
  int64_t rows;     /* of all requests */
  /* With the rows of all requests, in the order of the configuration, then controls and states of a
   * sequence. Optional ones that the requests do not carry are left out. An input that may be ragged
   * has one dimension: the elements of all requests, one request behind the other. */
  const core_tensor *inputs;
  const core_request *requests;
  core_answer *all; /* outputs with the rows of all requests, which core splits */
  const core_calls *core;
  /* Written by the backend if it knows better than core, in CLOCK_MONOTONIC: when its inputs were in
   * place, and when it had computed. For statistics; 0 for what core measures around execute. */
  int64_t compute_start_ns;
  int64_t compute_end_ns;
} core_batch;

enum core_instance_flags {
  CORE_NOT_GATHERED = 1 /* inputs of several requests are not copied together: `data` is NULL */
};

/* What a backend hands over. It fills the memory with zeros first, and keeps it as long as the capsule. */
typedef struct core_instance {
  uint32_t abi_version; /* CORE_ABI_VERSION */
  uint32_t struct_size; /* sizeof(core_instance) */
  uint64_t flags;       /* of core_instance_flags */
  void *self;           /* given to each call */
  /* Answer the requests of a batch. CORE_OK: what batch->all holds goes to every request that has no
   * answer of its own, and a request without any gets an error. Else these get an error of that kind;
   * its text is what execute has written to `error` (zeros before, error_size bytes, a missing end is
   * mended), or why core has refused an output, or one that says that there is no text.
   * Calls for one instance never overlap. Must not throw. */
  int32_t (*execute)(void *self, core_batch *batch, char *error, size_t error_size);
  /* Called once, before the first batch, where the instance opens; may be NULL. Holds the GIL. `core` stays
   * valid as long as the process. */
  void (*attach)(void *self, const core_calls *core);
} core_instance;

enum core_metric_kind { CORE_COUNTER = 1, CORE_GAUGE = 2, CORE_HISTOGRAM = 3 };
enum core_log_level { CORE_LOG_VERBOSE = 1, CORE_LOG_INFO = 2, CORE_LOG_WARNING = 3, CORE_LOG_ERROR = 4 };

/* What core does for a backend. A NULL answer or batch is refused, never followed. */
struct core_calls {
  uint32_t abi_version;
  uint32_t struct_size;

  /* Memory for an output, not initialised, aligned to 64 bytes in host memory (to the client's choice in
   * its shared memory); never NULL for an output of no bytes. Where the client wants the output in
   * shared memory, it is that memory if it can be: nothing is copied after it.
   *   byte_size   for CORE_BYTES of the wire form; else 0, or what datatype and shape say
   * NULL if core refuses it (a name or datatype that the configuration has not, no shape, the wrong
   * number of rows, given twice, no memory): the answer is then an error that says so. */
  void *(*output)(core_answer *answer, const char *name, int32_t dtype, const int64_t *shape,
                  int32_t dimensions, uint64_t byte_size);

  /* The same with memory of the backend, which core reads until it calls release(argument), from any
   * thread, without the GIL, once: also when it refuses the output (not CORE_OK). With release NULL the
   * bytes are copied before the call returns. */
  int32_t (*give)(core_answer *answer, const char *name, int32_t dtype, const int64_t *shape,
                  int32_t dimensions, const void *data, uint64_t byte_size,
                  void (*release)(void *argument), void *argument);

  /* A parameter of the response; copied. Not for batch->all. */
  int32_t (*parameter)(core_answer *answer, const core_parameter *parameter);

  /* Make the answer an error of that kind; the first one counts. `text` is copied, may be NULL. */
  int32_t (*fail)(core_answer *answer, int32_t kind, const char *text);

  /* The answer to one request alone, in the place of its part of batch->all. It goes out when execute
   * has returned. The same one for each call; NULL if there is no such request or it is answered later. */
  core_answer *(*one)(core_batch *batch, int32_t request);

  /* The answers to one request, sent by `send` now or after execute has returned, several for a decoupled
   * model. Must be released. NULL as for `one`, also behind a `one`. Takes the GIL. */
  core_answer *(*later)(core_batch *batch, int32_t request);

  /* Send what an answer made by `later` holds: outputs and parameters, or the error. It is empty then,
   * for the next. `final`: the last one. Empty and final: there are no more. Not CORE_OK for an answer
   * that is not from `later`, or has ended. Takes the GIL. */
  int32_t (*send)(core_answer *answer, int32_t final);

  /* Give an answer made by `later` back, once. If it has not ended, this ends it: for a decoupled model
   * there are no more answers, for another one it is an error. Takes the GIL. */
  void (*release)(core_answer *answer);

  /* Whether the client keeps up with the answers (0: it is behind, and who makes more should wait), and
   * whether nobody waits any more; for an answer made by `later`. */
  int32_t (*has_room)(const core_answer *answer);
  int32_t (*is_cancelled)(const core_answer *answer);

  /* The request comes again in a later batch. */
  int32_t (*reschedule)(core_batch *batch, int32_t request);

  /* Id, parameters, wanted outputs and more; NULL if there is no such request. Takes the GIL, the first
   * time for each request. */
  const core_details *(*details)(core_batch *batch, int32_t request);

  /* CLOCK_MONOTONIC in nanoseconds. */
  int64_t (*now_ns)(void);

  /* A line in the server's log. Takes the GIL. */
  void (*log)(int32_t level, const char *text);

  /* A metric that the server publishes; labels are CORE_TEXT parameters; buckets, ascending, for a
   * histogram only. NULL if it cannot be, which is logged. All four take the GIL.
   * metric_add adds to a counter or gauge, and observes for a histogram; metric_set sets a gauge. */
  core_metric *(*metric)(int32_t kind, const char *name, const char *help, const core_parameter *labels,
                         int32_t label_count, const double *buckets, int32_t bucket_count);
  int32_t (*metric_add)(core_metric *metric, double value);
  int32_t (*metric_set)(core_metric *metric, double value);
  void (*metric_release)(core_metric *metric);
};

/* The input of that name, or NULL. */
static inline const core_tensor *core_input(const core_batch *batch, const char *name) {
  for (int32_t i = 0; i < batch->input_count; i++)
    if (!strcmp(batch->inputs[i].name, name)) return &batch->inputs[i];
  return NULL;
}

/* Bytes of one element; 0 for CORE_BYTES and for what is no datatype. */
static inline uint64_t core_element_size(int32_t dtype) {
  static const uint8_t sizes[15] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 0, 2};
  return dtype > 0 && dtype < 15 ? sizes[dtype] : 0;
}

/* The next element of a BYTES tensor. *at begins at its data and moves behind the element; *element and
 * *size tell where it is. 0 at the end, and where what is left is no element. */
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
