/// Integers that a run works out, as symbols of which extents are made. Thread-safety: as the graph.
#pragma once

#include <optional>
#include <string>

#include "compiler/build/op_builder.h"

namespace tensormill::build {

/// What a value is that follows from constants and free dims alone, by real numbers of float32 in between,
/// too; nothing of any other.
std::optional<ir::KnownValue> following_value(const OpBuilder& builder, ir::ValueId value);

/// The elements of `numbers`, i64 [n], each a symbol that a run binds to it, or, where they follow from
/// constants and free dims, itself. What is built takes `low` or more where one is given; `high` bounds the
/// numbers of all runs: nothing checks that.
ir::SymShape bind_run_numbers(OpBuilder& builder, ir::ValueId numbers, std::optional<int64_t> low,
                              const std::optional<ir::SymInt>& high);

/// The integers of `stored`, a tensor of the file, or, where there is none, of `value`: known ones as they
/// are, others as bind_run_numbers has them. Throws UnsupportedForm about `name` for too many.
ir::SymShape integers_of(OpBuilder& builder, const std::optional<Tensor>& stored, ir::ValueId value,
                         const std::string& name, std::optional<int64_t> low,
                         const std::optional<ir::SymInt>& high);

/// Integers that are known while the graph is built, be it as expressions of free dims. Throws
/// Error(kInvalidModel) for real numbers, and UnsupportedForm about `what` where a run works them out.
ir::SymShape known_integers(const OpBuilder& builder, ir::ValueId value, const char* what);

/// The one of `integers`. Throws Error(kInvalidModel) about `what` where it is not one.
ir::SymInt only_integer(const OpBuilder& builder, const ir::SymShape& integers, const char* what);

/// The first elements of x along an axis, as many as `count`, i64 [1], says: the extent is a symbol that a
/// run binds, the axis of x its upper bound.
ir::ValueId bound_part(OpBuilder& builder, ir::ValueId x, int64_t axis, ir::ValueId count);

/// x, of one element or more; a run in which `holds`, bools of an axis or of none, are not all true fails,
/// and says `what`, in which the numbers `shown` stand for each "{}".
ir::ValueId required(OpBuilder& builder, ir::ValueId x, ir::ValueId holds, const std::string& what,
                     const std::vector<ir::ValueId>& shown = {});

}  // namespace tensormill::build
