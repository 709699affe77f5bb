/// The child's side of a measurement. Thread-safety: called once, from main.
#pragma once

#include <span>
#include <string>

#include "server/jobs/child_main.h"

namespace tensormill::measure {

/// Answers each line of the request pipe with a "measured" event, until the pipe ends. Descriptors: the
/// pipe, the object code, the tensors (inputs to read, outputs to write). Every buffer of the kernel lies
/// between pages that cannot be touched.
std::string child_measure(jobs::ChildChannel& channel, std::span<const std::string> arguments);

}  // namespace tensormill::measure
