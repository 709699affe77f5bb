/* free_dims PACKAGE: what a package takes and gives, and runs of it with several extents of its free dims.
 * Plain C. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensormill.h>

static int fail(const char* what, int32_t code) {
  fprintf(stderr, "error: %s: %s: %s\n", what, tm_error_name(code), tm_last_error());
  return 3;
}

static void print_port(const char* way, const tm_port* port) {
  printf("%s %s [", way, port->name);
  for (int32_t d = 0; d < port->rank; ++d) {
    if (port->dim_names[d] != NULL) {
      printf("%s%s", d == 0 ? "" : ",", port->dim_names[d]);
    } else {
      printf("%s%lld", d == 0 ? "" : ",", (long long)port->shape[d]);
    }
  }
  printf("]\n");
}

/* One run with every free dim of the first input as `extent`, and zeros. */
static int run(tm_executor* executor, const tm_port* port, int64_t extent) {
  int64_t shape[32];
  size_t bytes = (size_t)tm_dtype_bytes(port->dtype);
  for (int32_t d = 0; d < port->rank; ++d) {
    shape[d] = port->shape[d] < 0 ? extent : port->shape[d];
    bytes *= (size_t)shape[d];
  }
  void* zeros = calloc(1, bytes + 1);
  if (zeros == NULL) return 5;
  const tm_tensor input = {port->dtype, port->rank, shape, zeros, bytes};
  int32_t code = tm_executor_set_input_at(executor, 0, &input);
  free(zeros);
  if (code == 0) code = tm_executor_run(executor, 0, 0);
  tm_tensor output;
  if (code == 0) code = tm_executor_get_output_at(executor, 0, &output);
  if (code != 0) return fail("run", code);
  printf("%lld: output of", (long long)extent);
  for (int32_t d = 0; d < output.rank; ++d) printf(" %lld", (long long)output.shape[d]);
  printf("\n");
  return 0;
}

int main(int count, char** words) {
  if (count != 2) {
    fprintf(stderr, "usage: free_dims PACKAGE\n");
    return 2;
  }
  tm_runtime* runtime = NULL;
  tm_package* package = NULL;
  tm_executor* executor = NULL;
  tm_port port;
  int result = 0;
  int32_t code = tm_runtime_create(tm_default_threads(), &runtime);
  if (code == 0) code = tm_package_load(words[1], &package);
  if (code == 0) code = tm_executor_create(runtime, package, 0, &executor);
  if (code != 0) {
    result = fail(words[1], code);
  } else {
    for (int32_t i = 0; i < tm_package_output_count(package); ++i)
      if (tm_package_output(package, i, &port) == 0) print_port("out", &port);
    if (tm_package_input(package, 0, &port) == 0) print_port("in", &port);
    for (int64_t extent = 1; extent <= 4 && result == 0; ++extent) result = run(executor, &port, extent);
  }
  tm_executor_destroy(executor);
  tm_package_destroy(package);
  tm_runtime_destroy(runtime);
  return result;
}
