#include "compiler/frontend/pytorch/views.h"

#include <algorithm>

#include "compiler/build/compose.h"
#include "compiler/build/numbers/complex.h"

namespace tensormill::frontend::pytorch {

namespace {

using build::Compose;
using build::OpBuilder;
using V = ir::ValueId;

/// `whole` with `part` in place of elements start, start + step ... of the axis.
V with_part(OpBuilder& builder, V whole, V part, int64_t axis, const ir::SymInt& start, int64_t step) {
  Compose c(builder);
  const auto at = static_cast<size_t>(axis);
  const ir::SymInt extent = c.shape(whole)[at], count = c.shape(part)[at];
  if (step == 1) {
    std::vector<V> parts;
    if (!is_proven(ir::Relation::kEqual, start, 0)) parts.push_back(c.slice(whole, axis, 0, start));
    parts.push_back(part);
    const ir::SymInt end = start + count;
    if (!is_proven(ir::Relation::kEqual, end, extent))
      parts.push_back(c.slice(whole, axis, end, extent - end));
    return c.concat(parts, axis);
  }
  // Each element is the whole's, or that of the part which belongs to its place.
  const size_t rank = c.shape(whole).size();
  const V from = c.sub(c.iota(extent), c.dims({start}, {}));
  const V place = c.div(from, c.ints({step}, {}));
  const V is_there = builder.add("and", {c.binary("equal", c.mul(place, c.ints({step}, {})), from),
                                         builder.add("and", {c.binary("greater_equal", from, c.ints({0}, {})),
                                                             c.binary("less", place, c.dims({count}, {}))})});
  const V inside =
      builder.add("max", {c.ints({0}, {}), builder.add("min", {place, c.dims({count - 1}, {})})});
  ir::SymShape along(rank, 1);
  along[at] = extent;
  return c.where(c.reshape(is_there, along), c.gather(part, inside, axis), whole);
}

std::shared_ptr<const ViewStep> made(ViewStep step) {
  return std::make_shared<const ViewStep>(std::move(step));
}

}  // namespace

std::string why_stale(const std::string& name) {
  return "tensor \"" + name +
         "\" is read, which may or may not share its elements with one that was written since: write to a "
         "clone() of it";
}

V read_view(OpBuilder& builder, View& view) {
  if (view.value != ir::kAbsent && view.version == view.storage->version) return view.value;
  V value = view.storage->value;
  for (const auto& step : view.steps) value = step->read(builder, value);
  view.value = value;
  view.version = view.storage->version;
  return value;
}

void write_view(OpBuilder& builder, View& view, V value) {
  std::vector<V> wholes{view.storage->value};
  for (size_t i = 0; i + 1 < view.steps.size(); ++i)
    wholes.push_back(view.steps[i]->read(builder, wholes.back()));
  V part = value;
  for (size_t i = view.steps.size(); i-- > 0;) {
    if (!view.steps[i]->write)
      builder.unsupported("self", "writing to a view of this kind is not implemented");
    part = view.steps[i]->write(builder, wholes[i], part);
  }
  view.storage->value = part;
  view.value = value;
  view.version = ++view.storage->version;
  if (view.storage->maybe_shared == nullptr) return;
  for (const std::weak_ptr<Storage>& each : *view.storage->maybe_shared) {
    const std::shared_ptr<Storage> other = each.lock();
    if (other != nullptr && other != view.storage) other->is_stale = true;
  }
  view.storage->maybe_shared = nullptr;
}

std::shared_ptr<const ViewStep> slice_step(int64_t axis, const ir::SymInt& start, const ir::SymInt& extent,
                                           int64_t step) {
  return made({[=](OpBuilder& builder, V x) { return Compose(builder).slice(x, axis, start, extent, step); },
               [=](OpBuilder& builder, V whole, V part) {
                 return with_part(builder, whole, part, axis, start, step);
               },
               [=](Layout layout, const te::DimFacts&) {
                 layout.sizes[static_cast<size_t>(axis)] = extent.expr();
                 layout.strides[static_cast<size_t>(axis)] *= step;
                 return std::optional(layout);
               }});
}

std::shared_ptr<const ViewStep> select_step(int64_t axis, const ir::SymInt& at) {
  return made({[=](OpBuilder& builder, V x) {
                 Compose c(builder);
                 return c.squeeze(c.slice(x, axis, at, 1), axis);
               },
               [=](OpBuilder& builder, V whole, V part) {
                 return with_part(builder, whole, Compose(builder).unsqueeze(part, axis), axis, at, 1);
               },
               [=](Layout layout, const te::DimFacts&) {
                 layout.sizes.erase(layout.sizes.begin() + axis);
                 layout.strides.erase(layout.strides.begin() + axis);
                 return std::optional(layout);
               }});
}

std::shared_ptr<const ViewStep> transpose_step(std::vector<int64_t> perm) {
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return made(
      {[=](OpBuilder& builder, V x) { return Compose(builder).transpose(x, perm); },
       [=](OpBuilder& builder, V, V part) { return Compose(builder).transpose(part, inverse); },
       [=](const Layout& layout, const te::DimFacts&) { return std::optional(turned(layout, perm)); }});
}

std::shared_ptr<const ViewStep> reshape_step(const ir::SymShape& shape) {
  return made({[=](OpBuilder& builder, V x) { return Compose(builder).reshape(x, shape); },
               [](OpBuilder& builder, V whole, V part) {
                 Compose c(builder);
                 return c.reshape(part, c.shape(whole));
               },
               [=](const Layout& layout, const te::DimFacts& facts) {
                 return viewed(layout, dims_of(shape), facts);
               }});
}

std::shared_ptr<const ViewStep> expand_step(const ir::SymShape& shape) {
  return made({[=](OpBuilder& builder, V x) { return Compose(builder).expand(x, shape); },
               [=](OpBuilder& builder, V whole, V part) {
                 if (!same(Compose(builder).shape(whole), shape))
                   builder.unsupported(
                       "self", "writing to elements that are there more than once is not implemented");
                 return part;
               },
               [=](const Layout& layout, const te::DimFacts&) { return expanded(layout, dims_of(shape)); }});
}

std::shared_ptr<const ViewStep> step_of_pairs(const std::shared_ptr<const ViewStep>& step) {
  ViewStep of_pairs;
  of_pairs.read = [step](OpBuilder& builder, V x) {
    const build::Complex parts = build::parts_of(builder, x);
    return build::paired(builder, {step->read(builder, parts.real), step->read(builder, parts.imaginary)});
  };
  if (step->write)
    of_pairs.write = [step](OpBuilder& builder, V whole, V part) {
      const build::Complex from = build::parts_of(builder, whole), to = build::parts_of(builder, part);
      return build::paired(builder, {step->write(builder, from.real, to.real),
                                     step->write(builder, from.imaginary, to.imaginary)});
    };
  of_pairs.layout = step->layout;
  return made(std::move(of_pairs));
}

std::shared_ptr<const ViewStep> numbers_step() {
  return made({[](OpBuilder&, V x) { return x; }, [](OpBuilder&, V, V part) { return part; },
               [](Layout layout, const te::DimFacts&) {
                 for (te::Dim& stride : layout.strides) stride *= 2;
                 layout.sizes.emplace_back(2);
                 layout.strides.emplace_back(1);
                 return std::optional(layout);
               }});
}

std::shared_ptr<const ViewStep> pairs_step() {
  return made({[](OpBuilder&, V x) { return x; }, [](OpBuilder&, V, V part) { return part; }});
}

std::shared_ptr<const ViewStep> conjugate_step() {
  const auto conjugated = [](OpBuilder& builder, V x) {
    return build::paired(builder, build::conjugate(builder, build::parts_of(builder, x)));
  };
  return made({conjugated, [=](OpBuilder& builder, V, V part) { return conjugated(builder, part); },
               [](const Layout& layout, const te::DimFacts&) { return std::optional(layout); }});
}

}  // namespace tensormill::frontend::pytorch
