/**
 * The one interface between generated code and the executor; plain C, no other include.
 *
 * A kernel is `int32_t kernel(const tm_call* call)`. It has no globals, thread-local storage, libc calls,
 * allocation or large stack arrays. Extents and offsets are int64. It returns 0, or a positive tm_status and
 * stores the index at fault in *call->error_index; the executor names it and the model's node.
 *
 * A parallel loop is an outlined function that the kernel hands to call->parallel->launch with the number of
 * tasks, which the schedule fixed: which worker runs a task never changes a result.
 */
#pragma once
/* Names of a C interface. NOLINTBEGIN(readability-identifier-naming) */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TM_ABI_VERSION 1u

/* What a kernel can return. */
enum {
  TM_OK = 0,
  TM_INDEX_OUT_OF_RANGE = 1, /* data of a tensor was used as an index and is outside its axis */
  TM_CANCELLED = 2,          /* launch was asked to stop */
  TM_ABI_MISMATCH = 3        /* the call has another ABI version, or another number of buffers or dims */
};

typedef struct tm_call tm_call;

/* One task of a parallel loop. `closure` is the kernel's own; `worker` < parallel->workers names the slice of
 * the worker workspace that this task may use. Returns as a kernel does. */
typedef int32_t (*tm_task)(const tm_call* call, void* closure, int64_t task, int32_t worker);

typedef struct tm_parallel {
  void* pool;      /* the executor's own */
  int32_t workers; /* worker workspaces available, >= 1 */
  int32_t reserved;
  /* Runs task(call, closure, i, worker) for all 0 <= i < tasks and returns the code of the lowest failing i,
   * or 0. */
  int32_t (*launch)(const tm_call* call, tm_task task, void* closure, int64_t tasks);
} tm_parallel;

struct tm_call {
  uint32_t abi_version;
  uint32_t num_buffers;
  void* const*
      buffers; /* parameters in the kernel's order; each 64-byte aligned with 64 readable bytes after it */
  const int64_t* dims; /* symbolic extents in the kernel's order */
  uint32_t num_dims;
  uint32_t reserved;
  void* shared_workspace; /* 64-byte aligned, shared by all workers */
  void* worker_workspace; /* worker w owns [w * worker_workspace_stride, + stride), 64-byte aligned */
  int64_t worker_workspace_stride;
  const tm_parallel* parallel;
  int64_t* error_index; /* written before a non-zero return */
};

typedef int32_t (*tm_kernel)(const tm_call* call);

#ifdef __cplusplus
}
static_assert(sizeof(void*) == 8 && sizeof(tm_call) == 72,
              "tm_call has the same layout for executor and generated code");
#endif
/* NOLINTEND(readability-identifier-naming) */
