/// Copies of symbols for the inside of a branch, with the facts that hold of the originals: a guard that the
/// branch's body adds holds where the branch is taken, and must say nothing of the graph around it. "N.b2" is
/// symbol N in branch number 2. Thread-safety: as the table.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "compiler/ir/sym_int.h"

namespace tensormill::ir {

/// What is outside of all branches.
inline constexpr int64_t kOutside = -1;

/// A new branch inside of branch `around`, or of kOutside, by its number.
int64_t add_branch(SymbolTable& table, int64_t around);
/// The value around the branch in the branch's symbols, and the reverse.
SymInt inside(const SymInt& value, int64_t branch);
SymInt outside(const SymInt& value, int64_t branch);
/// A value of a branch, or of none, in the symbols of one inside of it; nothing where it has other ones.
std::optional<SymInt> seen_from(const SymInt& value, int64_t branch);
/// The branch that the symbol is of, and what it stands for around that; kOutside, and the symbol itself, for
/// one of no branch.
int64_t branch_of(std::string_view symbol);
std::string around_branch(const std::string& symbol);
/// The branch that all symbols of the dims are of, kOutside where none is; nothing where they are of several.
std::optional<int64_t> branch_of(const te::Dim& dim);
std::optional<int64_t> branch_of(const Guard& guard);
/// All branches whose symbols the guard has.
std::set<int64_t> branches_of(const Guard& guard);
/// Whether it follows from what holds around its branch.
bool is_inherited(const SymbolTable& table, const Guard& guard);
/// Adds to values of symbols those of branches that have none: as around.
void add_branch_values(const SymbolTable& table, std::map<std::string, int64_t>& values);

}  // namespace tensormill::ir
