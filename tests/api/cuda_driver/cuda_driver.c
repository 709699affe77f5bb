/* A stand-in for NVIDIA's libcuda.so.1, of the functions that the server uses (api/shared/cuda_driver.def): two GPUs, whose memory is shared
   memory objects. An IPC handle is the name of one, or NAME@OFFSET for what begins at that byte of it, and zeros. So a client that
   writes the object and the server that opened the handle see the same bytes, as they would in a GPU's memory.

   It is stricter than the driver where the server could be wrong: a copy needs a current context that is retained and memory that is
   open, and what is copied to a GPU is there after the stream was synchronised, not before. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OK = 0, INVALID_VALUE = 1, NOT_INITIALIZED = 3, INVALID_DEVICE = 101, INVALID_CONTEXT = 201, ILLEGAL_ADDRESS = 700 };
enum { GPUS = 2, MAPPINGS = 256, DEPTH = 8 };

typedef unsigned long long address_t;
struct ipc_handle {
  char bytes[64];
};
struct mapping {
  char name[64];
  char* base;
  size_t size;
  int opened;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int initialized;
static int retained[GPUS]; /* a context is the address of its GPU's count */
static struct mapping mappings[MAPPINGS];

static __thread void* stack[DEPTH];
static __thread int depth;
static __thread address_t late_to; /* of a copy that is on its way */
static __thread void* late_bytes;
static __thread size_t late_size;

/* What the tests look at: handles and contexts that are in use. */
int standin_opened(void) {
  int all = 0;
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < MAPPINGS; ++i) all += mappings[i].opened;
  pthread_mutex_unlock(&mutex);
  return all;
}
int standin_retained(void) {
  pthread_mutex_lock(&mutex);
  const int all = retained[0] + retained[1];
  pthread_mutex_unlock(&mutex);
  return all;
}

int cuGetErrorName(int error, const char** name) {
  *name = error == OK                ? "CUDA_SUCCESS"
          : error == INVALID_VALUE   ? "CUDA_ERROR_INVALID_VALUE"
          : error == NOT_INITIALIZED ? "CUDA_ERROR_NOT_INITIALIZED"
          : error == INVALID_DEVICE  ? "CUDA_ERROR_INVALID_DEVICE"
          : error == INVALID_CONTEXT ? "CUDA_ERROR_INVALID_CONTEXT"
          : error == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                     : NULL;
  return *name == NULL ? INVALID_VALUE : OK;
}
int cuGetErrorString(int error, const char** text) {
  *text = error == INVALID_VALUE ? "invalid argument" : "an error of the stand-in";
  return OK;
}

int cuInit(unsigned flags) {
  initialized = 1;
  return flags == 0 ? OK : INVALID_VALUE;
}
int cuDeviceGetCount(int* count) {
  *count = GPUS;
  return initialized ? OK : NOT_INITIALIZED;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal >= 0 && ordinal < GPUS ? OK : INVALID_DEVICE;
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  if (device < 0 || device >= GPUS) return INVALID_DEVICE;
  pthread_mutex_lock(&mutex);
  ++retained[device];
  pthread_mutex_unlock(&mutex);
  *context = &retained[device];
  return OK;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  if (device < 0 || device >= GPUS) return INVALID_DEVICE;
  pthread_mutex_lock(&mutex);
  const int result = retained[device] > 0 ? OK : INVALID_CONTEXT;
  if (result == OK) --retained[device];
  pthread_mutex_unlock(&mutex);
  return result;
}
int cuCtxPushCurrent_v2(void* context) {
  if (context == NULL || depth == DEPTH) return INVALID_CONTEXT;
  stack[depth++] = context;
  return OK;
}
int cuCtxPopCurrent_v2(void** context) {
  if (depth == 0) return INVALID_CONTEXT;
  *context = stack[--depth];
  return OK;
}

/* With the mutex. */
static int has_context(void) { return depth > 0 && *(int*)stack[depth - 1] > 0; }
static struct mapping* mapping_of(address_t address) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  for (int i = 0; i < MAPPINGS; ++i) {
    const address_t base = (address_t)(uintptr_t)mappings[i].base;
    const size_t pages = (mappings[i].size + page - 1) / page * page;
    if (mappings[i].opened > 0 && address >= base && address - base < pages) return &mappings[i];
  }
  return NULL;
}
static int is_in(const struct mapping* mapping, address_t address, size_t size) {
  const size_t offset = address - (address_t)(uintptr_t)mapping->base;
  return offset <= mapping->size && mapping->size - offset >= size;
}
static struct mapping* opened_of(const char* name) {
  struct mapping* unused = NULL;
  for (int i = 0; i < MAPPINGS; ++i) {
    if (mappings[i].opened > 0 && strcmp(mappings[i].name, name) == 0) return &mappings[i];
    if (mappings[i].opened == 0) unused = &mappings[i];
  }
  return unused;
}
static int map_object(struct mapping* made, const char* name) {
  const int file = shm_open(name, O_RDWR | O_CLOEXEC, 0);
  if (file < 0) return INVALID_VALUE;
  struct stat status;
  void* base = MAP_FAILED;
  if (fstat(file, &status) == 0 && status.st_size > 0)
    base = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (base == MAP_FAILED) return INVALID_VALUE;
  strcpy(made->name, name);
  made->base = base;
  made->size = (size_t)status.st_size;
  return OK;
}

int cuIpcOpenMemHandle_v2(address_t* address, struct ipc_handle handle, unsigned flags) {
  char name[65] = {0};
  memcpy(name, handle.bytes, sizeof handle.bytes);
  char* at = strchr(name, '@');
  const size_t offset = at == NULL ? 0 : strtoul(at + 1, NULL, 10);
  if (at != NULL) *at = 0;
  if (flags != 1 || name[0] != '/' || strlen(name) >= sizeof mappings[0].name) return INVALID_VALUE;
  pthread_mutex_lock(&mutex);
  struct mapping* found = opened_of(name);
  int result = !has_context() ? INVALID_CONTEXT : found == NULL ? INVALID_VALUE : OK;
  if (result == OK && found->opened == 0) result = map_object(found, name);
  if (result == OK) {
    ++found->opened;
    *address = (address_t)(uintptr_t)found->base + offset;
  }
  pthread_mutex_unlock(&mutex);
  return result;
}
int cuIpcCloseMemHandle(address_t address) {
  pthread_mutex_lock(&mutex);
  struct mapping* found = mapping_of(address);
  const int result = !has_context() ? INVALID_CONTEXT : found == NULL ? INVALID_VALUE : OK;
  if (result == OK && --found->opened == 0) munmap(found->base, found->size);
  pthread_mutex_unlock(&mutex);
  return result;
}
int cuMemGetAddressRange_v2(address_t* base, size_t* size, address_t address) {
  pthread_mutex_lock(&mutex);
  const struct mapping* found = mapping_of(address);
  const int is_there = found != NULL && is_in(found, address, 0);
  const int result = !has_context() ? INVALID_CONTEXT : !is_there ? INVALID_VALUE : OK;
  if (result == OK) {
    *base = (address_t)(uintptr_t)found->base;
    *size = found->size;
  }
  pthread_mutex_unlock(&mutex);
  return result;
}

/* The copies are made without the mutex: memory that is closed meanwhile is no longer mapped. */
static int check_copy(address_t address, size_t size) {
  pthread_mutex_lock(&mutex);
  const struct mapping* found = mapping_of(address);
  const int is_there = found != NULL && is_in(found, address, size);
  const int result = !has_context() ? INVALID_CONTEXT : !is_there ? ILLEGAL_ADDRESS : OK;
  pthread_mutex_unlock(&mutex);
  return result;
}
int cuMemcpyDtoH_v2(void* to, address_t from, size_t size) {
  const int result = check_copy(from, size);
  if (result == OK) memcpy(to, (const void*)(uintptr_t)from, size);
  return result;
}
int cuMemcpyHtoD_v2(address_t to, const void* from, size_t size) {
  const int result = check_copy(to, size);
  if (result != OK) return result;
  free(late_bytes);
  late_bytes = malloc(size);
  if (late_bytes == NULL) return INVALID_VALUE;
  memcpy(late_bytes, from, size);
  late_to = to;
  late_size = size;
  return OK;
}
int cuStreamSynchronize(void* stream) {
  if (stream != NULL || depth == 0) return INVALID_CONTEXT;
  if (late_bytes != NULL) memcpy((void*)(uintptr_t)late_to, late_bytes, late_size);
  free(late_bytes);
  late_bytes = NULL;
  return OK;
}
