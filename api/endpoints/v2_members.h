/// Members of the JSON that a KServe v2 request is. Throw Error(kInvalidArgument) naming `where` for one of
/// another type. Thread-safety: pure functions.
#pragma once

#include <string>

#include "runtime/base/error.h"
#include "runtime/base/json_fwd.h"
#include "runtime/base/shape.h"

namespace tensormill::endpoints {

[[noreturn]] void reject(ErrorCode code, const std::string& where, const std::string& what);
/// A member of this type; null when it is absent.
const Json* member(const Json& object, const char* name, const std::string& where, bool (Json::*is)() const);
/// "" where it is absent and need not be there.
std::string text_of(const Json& object, const char* name, const std::string& where, bool required);
/// A parameter of an input, an output or the request; null when it is absent.
const Json* parameter(const Json& object, const char* name, const std::string& where,
                      bool (Json::*is)() const);
/// The member "shape". Throws Error(kInvalidTensor) for a dim that is no size, too.
Shape shape_of(const Json& input, const std::string& where);

}  // namespace tensormill::endpoints
