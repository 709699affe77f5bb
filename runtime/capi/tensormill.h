/**
 * The C interface of the runtime: load a package, set inputs, run, get outputs. No exception crosses it.
 *
 * Every function that can fail returns 0 for success or a negative code (TM_ERR_*); tm_last_error() then has
 * the message of the calling thread's last failure. Pointers that a function hands out belong to their
 * object. Thread-safety: a runtime and a package may be shared by threads; an executor belongs to one thread
 * at a time.
 */
#pragma once
/* A program may see the installed file and the one beside a bundle. */
#ifndef TENSORMILL_H
#define TENSORMILL_H
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

/* An input or output as the model declares it. It owns nothing: names and arrays live as long as the package.
 */
typedef struct {
  const char* name;
  tm_dtype dtype;
  int32_t rank;
  const int64_t* shape;         /* -1 for a free dim, which each run may have another value of */
  const char* const* dim_names; /* by dim: the free dim's name, null for a fixed extent */
} tm_port;

/* An input or output of tm_executor_call. */
typedef struct {
  tm_tensor tensor; /* the value of an input; of an output it is filled, and valid until the next run */
  void* place;      /* where an output is put; null for the executor's own storage. Not read of an input */
  size_t room;      /* bytes at `place` */
  int32_t may_lend; /* not 0: the memory is such as tm_executor_lend_input asks for, and the run reads or
                     * writes it where it lies if it can; 0: a copy */
} tm_argument;

/* How long a step of the last run took. Names live until the executor's next call. */
typedef struct {
  const char* name;
  const char* origin;  /* the model's first node that it came from, "" for none */
  int64_t start_ns;    /* since the start of the run */
  int64_t duration_ns; /* in a loop: of all iterations */
  int64_t flops;
  int64_t bytes; /* that it reads and writes at least */
} tm_step;

/* Message of this thread's last failure, "" when there was none. Valid until the thread's next call. */
const char* tm_last_error(void);
/* "TM_ERR_MEMORY" for the code, "" for a number that is none. */
const char* tm_error_name(int32_t code);
/* Of this library: "0.1.0". */
const char* tm_version(void);
/* CPUs that this process may use: its affinity, less what its control group leaves. */
int32_t tm_default_threads(void);
/* Bytes of an element, 1 for a byte of a string; 0 for what is no dtype. */
int32_t tm_dtype_bytes(tm_dtype dtype);

/* threads >= 1: the cores that all runs together use. A run takes its caller's thread and, beside it, threads
 * of the runtime: with 1 there are none, and as many runs as there are cores go on at once in threads of the
 * caller's, each with a runtime of its own. */
int32_t tm_runtime_create(int32_t threads, tm_runtime** runtime);
/* All executors of the runtime must be idle. Null is allowed, here and below. */
void tm_runtime_destroy(tm_runtime* runtime);

/* path: an archive, or a folder with its members. */
int32_t tm_package_load(const char* path, tm_package** package);
/* An archive in memory, which is copied. */
int32_t tm_package_load_memory(const void* data, size_t size, tm_package** package);
/* As it, without the copy: the archive begins at a multiple of 64 and stays where and as it is until the
 * package and its executors are destroyed, as one that is linked into the program does. */
int32_t tm_package_load_static(const void* data, size_t size, tm_package** package);
/* Executors keep what they need of the package. */
void tm_package_destroy(tm_package* package);
/* metadata.json. Lives as long as the package. */
const char* tm_package_metadata(const tm_package* package);

/* 1 where the package also holds its model, for shapes that it has no kernels for. An executor of it takes
 * these if the interpreter is linked (compiler/capi); else they are refused here, and `tensormill run` takes
 * them. */
int32_t tm_package_holds_model(const tm_package* package);
int32_t tm_package_input_count(const tm_package* package);
int32_t tm_package_output_count(const tm_package* package);
int32_t tm_package_input(const tm_package* package, int32_t index, tm_port* port);
int32_t tm_package_output(const tm_package* package, int32_t index, tm_port* port);

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
/* The place of an input or output by name, the model's or "input_0", "output_0" ... */
int32_t tm_executor_input_index(const tm_executor* executor, const char* name, int32_t* index);
int32_t tm_executor_output_index(const tm_executor* executor, const char* name, int32_t* index);
int32_t tm_executor_set_input_at(tm_executor* executor, int32_t index, const tm_tensor* tensor);

/* Without a copy: runs read the tensor where it lies, which must stay there, as it was, up to the end of the
 * last run. Its address is to be a multiple of 64, and 64 bytes behind its last one are to be readable:
 * kernels read whole vectors. An address that is no such multiple is refused. *is_lent is 0 where the tensor
 * was copied after all: strings, a shape that is yet to agree with those of other inputs. Null for the
 * tensor: the input's own storage again. */
int32_t tm_executor_lend_input(tm_executor* executor, int32_t index, const tm_tensor* tensor,
                               int32_t* is_lent);
/* The input's own storage with the shape that is bound now, to write into; the input counts as set. */
int32_t tm_executor_input_buffer(tm_executor* executor, int32_t index, void** data, tm_tensor* tensor);
/* Inputs keep their values over runs; this forgets them, and gives lent ones back. */
int32_t tm_executor_clear_inputs(tm_executor* executor);

/* Bytes that the output's storage has with the shapes that the inputs have now: of an extent that data
 * decides the most that it may be, or, where each run binds it, as in the last run, and 0 before any.
 * Negative: an error. */
int64_t tm_executor_output_bytes(const tm_executor* executor, int32_t index);
/* Without a copy: runs write the output at `data`, which is as a lent input's but written, with `bytes` at
 * least tm_executor_output_bytes. Other shapes of inputs end it. *is_lent is 0, and nothing has changed,
 * where the package has no storage of the output's own: get it, and copy. Where get_output after a run says
 * another place than `data`, it is there. Null for data: the executor's own storage again. */
int32_t tm_executor_lend_output(tm_executor* executor, int32_t index, void* data, size_t bytes,
                                int32_t* is_lent);

/* threads <= 0: all of the runtime; time_limit_ms <= 0: none. */
int32_t tm_executor_run(tm_executor* executor, int32_t threads, int64_t time_limit_ms);
/* A whole run as one call, for callers whose calls cost something: sets the inputs, in the model's order and
 * all of them, runs as tm_executor_run does, and fills the tensors of the outputs. What it lends stays lent
 * as after tm_executor_lend_input and tm_executor_lend_output. An output of which outputs[i].tensor.data is
 * another address than `place` after the call was not put there: it has more bytes than `room`, or there is
 * no place. Fewer outputs than the model has are the first ones. */
int32_t tm_executor_call(tm_executor* executor, const tm_argument* inputs, int32_t input_count,
                         tm_argument* outputs, int32_t output_count, int32_t threads, int64_t time_limit_ms);
/* Fills *tensor; what it points at is valid until the next run. name: the model's, or "output_0" ... */
int32_t tm_executor_get_output(tm_executor* executor, const char* name, tm_tensor* tensor);
int32_t tm_executor_get_output_at(tm_executor* executor, int32_t index, tm_tensor* tensor);

/* on != 0: runs from here on note the time of each step. */
int32_t tm_executor_set_profiling(tm_executor* executor, int32_t on);
/* Of the last run that was noted. */
int32_t tm_executor_step_count(const tm_executor* executor);
int32_t tm_executor_step(const tm_executor* executor, int32_t index, tm_step* step);

#ifdef __cplusplus
}
#endif
/* NOLINTEND(readability-identifier-naming) */
#endif
