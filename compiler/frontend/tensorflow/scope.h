/// Nodes on their way into the graph: of the model's graph, of a function that is called, of a loop's
/// iteration. Thread-safety: as the graph.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/frontend/tensorflow/converters/row_loops.h"
#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

/// A graph's nodes, or a function's, by their names.
struct Body {
  const std::vector<Node>* nodes = nullptr;
  std::map<std::string_view, size_t> by_name = {};
  std::optional<std::string_view> function = {};  ///< its name

  Body() = default;
  Body(const std::vector<Node>& nodes, std::optional<std::string_view> function);
  bool is_function() const { return function.has_value(); }
  /// Throws Error(kInvalidModel) where there is none.
  size_t find(std::string_view name) const;
};

/// Which output of which node, or which argument of the function.
struct Reference {
  std::string_view name;
  size_t output = 0;
  bool is_argument = false;
  bool is_control = false;
};
/// "n", "n:1", "^n"; in functions "argument", "n:output:0". `arguments`: names of the function's.
Reference parse_reference(const Body& body, std::string_view text,
                          const std::map<std::string_view, Item>* arguments);

struct Scope {
  const Body& body;
  std::map<std::string_view, Item> arguments = {};
  const Attributes* placeholders = nullptr;
  /// Of an iteration of a loop (Enter, Exit): where the loop stands, and its frame.
  Scope* around = nullptr;
  std::string_view frame = {};
  std::unordered_map<size_t, std::vector<Item>> results = {};
  std::set<size_t> lost = {};  ///< could not be converted, or stand behind those
};

/// Converts nodes of scopes: those that are wanted, and what they need.
class ScopeImport {
public:
  using Convert = std::function<std::optional<std::vector<Item>>(Scope& scope, size_t node,
                                                                 const std::vector<Item>& inputs)>;
  using Note = std::function<void(const Body& body, const Node& node, const UnsupportedForm& form)>;
  using LoopOver = std::function<std::vector<Item>(Scope& scope, size_t node, const LoopForm& form,
                                                   const std::vector<Item>& initial)>;
  /// `convert`: the outputs of a node; nothing where it cannot be converted, which is noted, as `note` does
  /// of loops. `loop_over`: what a loop over rows makes of its first values, of which `node` is an Exit.
  ScopeImport(const ir::Graph& graph, Convert convert, Note note, LoopOver loop_over)
      : graph_(graph),
        convert_(std::move(convert)),
        note_(std::move(note)),
        loop_over_(std::move(loop_over)) {}

  /// What `text` names; nothing where a node that it needs could not be converted.
  std::optional<Item> evaluate(Scope& scope, std::string_view text);

private:
  struct Loop;
  struct LoopValues;
  bool run(Scope& scope, size_t wanted);
  bool finish(Scope& scope, size_t node);
  std::vector<size_t> needed(Scope& scope, size_t node) const;
  Item output_of(const Scope& scope, size_t node, size_t output) const;
  std::optional<Item> lookup(const Scope& scope, std::string_view text) const;
  bool run_loop(Scope& scope, size_t exit);
  bool ends_at_free_number(Scope& scope, const Loop& loop, const LoopValues& own);
  bool run_loop_over_rows(Scope& scope, size_t exit, const Loop& loop, const LoopValues& own,
                          const std::vector<Item>& initial);
  std::vector<size_t> kept_in(const Scope& scope, const Loop& loop) const;
  LoopValues values_of(const Scope& scope, const Loop& loop) const;
  std::vector<Item> iterate(Scope& scope, const Loop& loop, const LoopValues& own,
                            const std::vector<Item>& values, Item condition);
  std::optional<bool> goes_on(const Item& condition) const;
  Loop loop_of(const Scope& scope, size_t exit) const;

  const ir::Graph& graph_;
  Convert convert_;
  Note note_;
  LoopOver loop_over_;
  int depth_ = 0;
};

}  // namespace tensormill::frontend::tensorflow
