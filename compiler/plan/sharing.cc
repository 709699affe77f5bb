#include "compiler/plan/sharing.h"

namespace tensormill::plan {

namespace {

struct Writes {
  bool loops = false;   // parallel ones
  bool stores = false;  // outside of them
};

void find_parts(const te::Stmt& stmt, Writes& parts) {
  if (stmt->op == te::StmtOp::kFor && stmt->for_kind == te::ForKind::kParallel) {
    parts.loops = true;
    return;
  }
  if (stmt->op == te::StmtOp::kStore) parts.stores = true;
  for (const te::Stmt& child : stmt->children) find_parts(child, parts);
  if (stmt->body) find_parts(stmt->body, parts);
  if (stmt->else_body) find_parts(stmt->else_body, parts);
}

}  // namespace

package::Sharing sharing_of(const te::Function& function) {
  Writes parts;
  find_parts(function.body, parts);
  if (!parts.loops) return package::Sharing::kOne;
  return parts.stores ? package::Sharing::kLaunches : package::Sharing::kAll;
}

}  // namespace tensormill::plan
