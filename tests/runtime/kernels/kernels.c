/* Hand-written kernels in the form that the code generator emits: no libc, no globals. */
#include "runtime/abi/kernel_abi.h"

/* y = max(x, 0) over dims[0] elements. */
int32_t k_relu(const tm_call* call) {
  const float* x = (const float*)call->buffers[0];
  float* y = (float*)call->buffers[1];
  for (int64_t i = 0; i < call->dims[0]; ++i) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
  return TM_OK;
}

/* y = x + w, w broadcast over rows; in place allowed. */
int32_t k_add(const tm_call* call) {
  const float* x = (const float*)call->buffers[0];
  const float* w = (const float*)call->buffers[1];
  float* y = (float*)call->buffers[2];
  for (int64_t i = 0; i < call->dims[0]; ++i)
    for (int64_t j = 0; j < call->dims[1]; ++j) y[i * call->dims[1] + j] = x[i * call->dims[1] + j] + w[j];
  return TM_OK;
}

typedef struct {
  const int64_t* indices;
  const float* table;
  float* out;
  int64_t rows;
  int64_t width;
} gather_closure;

static int32_t gather_task(const tm_call* call, void* closure, int64_t task, int32_t worker) {
  const gather_closure* g = (const gather_closure*)closure;
  /* The worker's scratch is used, so that overlapping slices would show. */
  float* scratch = (float*)((char*)call->worker_workspace + worker * call->worker_workspace_stride);
  const int64_t row = g->indices[task];
  if (row < 0 || row >= g->rows) {
    *call->error_index = row;
    return TM_INDEX_OUT_OF_RANGE;
  }
  for (int64_t j = 0; j < g->width; ++j) scratch[j] = g->table[row * g->width + j];
  for (int64_t j = 0; j < g->width; ++j) g->out[task * g->width + j] = scratch[j];
  return TM_OK;
}

/* out[i] = table[indices[i]]; dims: count, rows, width. One task an index. */
int32_t k_gather(const tm_call* call) {
  gather_closure g;
  g.indices = (const int64_t*)call->buffers[0];
  g.table = (const float*)call->buffers[1];
  g.out = (float*)call->buffers[2];
  g.rows = call->dims[1];
  g.width = call->dims[2];
  return call->parallel->launch(call, gather_task, &g, call->dims[0]);
}
