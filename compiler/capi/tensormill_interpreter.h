/**
 * What the C interface of the runtime (runtime/capi/tensormill.h) can do where the compiler's importer and
 * its operators' references are linked as well, without LLVM: serve every shape that the model takes.
 */
#pragma once
/* Names of a C interface. NOLINTBEGIN(readability-identifier-naming) */

#include "runtime/capi/tensormill.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Executors that are made of the package from here on interpret its model at shapes that it has no kernels
 * for, each node by its operator's reference, on one thread: nothing is compiled, and a run takes some
 * hundred times as long as one of kernels. A package that holds no model has kernels for all of its shapes:
 * nothing changes. Not to be called while another thread uses the package. Returns 0 or TM_ERR_*. */
int32_t tm_package_use_interpreter(tm_package* package);

#ifdef __cplusplus
}
#endif
/* NOLINTEND(readability-identifier-naming) */
