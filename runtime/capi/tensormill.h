/**
 * The C interface of the runtime: load a package, set inputs, run, get outputs. No exception crosses it.
 *
 * Every function that can fail returns 0 for success or a negative code (TM_ERR_*); tm_last_error() then has
 * the message of the calling thread's last failure. Pointers that a function hands out belong to their
 * object. Thread-safety: a runtime and a package may be shared by threads; an executor belongs to one thread
 * at a time.
 */
#pragma once
/* Names of a C interface. NOLINTBEGIN(readability-identifier-naming) */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tm_runtime tm_runtime;   /* the thread pool */
typedef struct tm_package tm_package;   /* code and weights, shared */
typedef struct tm_executor tm_executor; /* one set of buffers */

enum {
  TM_ERR_INVALID_ARGUMENT = -1, /* a null pointer, a wrong name, shape or dtype */
  TM_ERR_INVALID_PACKAGE = -2,  /* broken, not admitted, or for another machine */
  TM_ERR_NOT_FOUND = -3,        /* no such file */
  TM_ERR_MEMORY = -4,           /* more memory than allowed or available */
  TM_ERR_TENSOR_DATA = -5,      /* the data of an input is outside what an operator accepts */
  TM_ERR_DEADLINE = -6,         /* the time limit passed */
  TM_ERR_INTERNAL = -7          /* anything else */
};

typedef enum {
  TM_FLOAT32 = 0,
  TM_FLOAT64 = 1,
  TM_FLOAT16 = 2,
  TM_BFLOAT16 = 3,
  TM_INT8 = 4,
  TM_INT16 = 5,
  TM_INT32 = 6,
  TM_INT64 = 7,
  TM_UINT8 = 8,
  TM_UINT16 = 9,
  TM_UINT32 = 10,
  TM_UINT64 = 11,
  TM_BOOL = 12,
  /* One byte an element; 4 bits stand in the low nibble, an int4 is sign-extended. */
  TM_FLOAT8_E4M3FN = 13,
  TM_FLOAT8_E4M3FNUZ = 14,
  TM_FLOAT8_E5M2 = 15,
  TM_FLOAT8_E5M2FNUZ = 16,
  TM_FLOAT8_E8M0FNU = 17,
  TM_FLOAT4_E2M1FN = 18,
  TM_INT4 = 19,
  TM_UINT4 = 20,
  /* UTF-8; the last axis holds the bytes of each string, zeros behind them. */
  TM_STRING = 21,
  TM_INT2 = 22,
  TM_UINT2 = 23
} tm_dtype;

/* A tensor in row-major order; it owns nothing. */
typedef struct {
  tm_dtype dtype;
  int32_t rank;
  const int64_t* shape;
  const void* data;
  size_t bytes;
} tm_tensor;

/* Message of this thread's last failure, "" when there was none. Valid until the thread's next call. */
const char* tm_last_error(void);

/* threads >= 1: the cores that all runs together use. */
int32_t tm_runtime_create(int32_t threads, tm_runtime** runtime);
/* All executors of the runtime must be idle. Null is allowed, here and below. */
void tm_runtime_destroy(tm_runtime* runtime);

/* path: an archive, or a folder with its members. */
int32_t tm_package_load(const char* path, tm_package** package);
/* An archive in memory, which is copied. */
int32_t tm_package_load_memory(const void* data, size_t size, tm_package** package);
/* Executors keep what they need of the package. */
void tm_package_destroy(tm_package* package);
/* metadata.json. Lives as long as the package. */
const char* tm_package_metadata(const tm_package* package);

/* max_memory: bytes for the executor's buffers, 0 for as many as the machine has. */
int32_t tm_executor_create(tm_runtime* runtime, const tm_package* package, int64_t max_memory,
                           tm_executor** executor);
void tm_executor_destroy(tm_executor* executor);

int32_t tm_executor_input_count(const tm_executor* executor);
int32_t tm_executor_output_count(const tm_executor* executor);
/* Names live as long as the executor; null for an index out of range. */
const char* tm_executor_input_name(const tm_executor* executor, int32_t index);
const char* tm_executor_output_name(const tm_executor* executor, int32_t index);

/* Copies. name: the model's, or "input_0" ... A shape that the package has no kernels for is refused, unless
 * the package interprets its model: compiler/capi/tensormill_interpreter.h. */
int32_t tm_executor_set_input(tm_executor* executor, const char* name, const tm_tensor* tensor);
/* threads <= 0: all of the runtime; time_limit_ms <= 0: none. */
int32_t tm_executor_run(tm_executor* executor, int32_t threads, int64_t time_limit_ms);
/* Fills *tensor; what it points at is valid until the next run. name: the model's, or "output_0" ... */
int32_t tm_executor_get_output(tm_executor* executor, const char* name, tm_tensor* tensor);

#ifdef __cplusplus
}
#endif
/* NOLINTEND(readability-identifier-naming) */
