#include "runtime/package/plan_formulas.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "runtime/base/error.h"

namespace tensormill::package {

namespace {

bool fits(int64_t number) { return number >= -kMaxFormulaNumber && number <= kMaxFormulaNumber; }

Json products_to_json(const DimFormula& formula) {
  Json products = Json::array();
  for (const DimProduct& product : formula.products) {
    Json factors = Json::array();
    for (const DimTerm& term : product.factors)
      factors.push_back({{"dim", term.dim}, {"mul", term.mul}, {"add", term.add}, {"div", term.div}});
    products.push_back({{"scale", product.scale}, {"factors", std::move(factors)}});
  }
  return products;
}

DimTerm term_from_json(const Json& json, std::string pointer, size_t free_dims) {
  JsonFields fields(json, std::move(pointer));
  DimTerm term;
  term.dim = static_cast<int32_t>(fields.integer("dim", 0, static_cast<int64_t>(free_dims) - 1));
  term.mul = fields.integer("mul", -kMaxFormulaNumber, kMaxFormulaNumber);
  term.add = fields.integer("add", -kMaxFormulaNumber, kMaxFormulaNumber);
  term.div = fields.integer("div", 1, kMaxFormulaNumber);
  fields.finish();
  return term;
}

ExtentRatio ratio_from_json(JsonFields& derived, size_t dims) {
  JsonFields fields(derived.object("ratio"), derived.pointer_to("ratio"));
  const auto formula = [&](std::string_view key) {
    JsonFields part(fields.object(key), fields.pointer_to(key));
    DimFormula result = formula_from_json(part, dims);
    part.finish();
    return result;
  };
  ExtentRatio ratio{formula("up"), formula("down")};
  fields.finish();
  return ratio;
}

}  // namespace

bool fits_package(const DimFormula& formula) {
  const auto has_number_beyond = [](const DimTerm& term) {
    return !fits(term.mul) || !fits(term.add) || !fits(term.div) || term.div < 1;
  };
  return fits(formula.offset) && formula.products.size() <= kMaxFormulaProducts &&
         std::all_of(formula.products.begin(), formula.products.end(), [&](const DimProduct& product) {
           return fits(product.scale) && product.factors.size() <= kMaxFormulaFactors &&
                  std::none_of(product.factors.begin(), product.factors.end(), has_number_beyond);
         });
}

bool fits_package(const DerivedExtent& extent) {
  return fits_package(extent.of) && extent.most >= 0 && extent.least <= kMaxFormulaNumber &&
         (!extent.ratio || (fits_package(extent.ratio->up) && fits_package(extent.ratio->down)));
}

Json formula_to_json(const DimFormula& formula) {
  return {{"offset", formula.offset}, {"products", products_to_json(formula)}};
}

DimFormula formula_from_json(JsonFields& fields, size_t free_dims) {
  DimFormula formula;
  formula.offset = fields.integer("offset", -kMaxFormulaNumber, kMaxFormulaNumber);
  const Json& products = fields.array("products", static_cast<int64_t>(kMaxFormulaProducts));
  for (size_t p = 0; p < products.size(); ++p) {
    JsonFields product(products[p], fields.pointer_to("products") + "/" + std::to_string(p));
    formula.products.push_back({product.integer("scale", -kMaxFormulaNumber, kMaxFormulaNumber), {}});
    const Json& factors = product.array("factors", static_cast<int64_t>(kMaxFormulaFactors));
    for (size_t f = 0; f < factors.size(); ++f) {
      formula.products.back().factors.push_back(
          term_from_json(factors[f], product.pointer_to("factors") + "/" + std::to_string(f), free_dims));
    }
    product.finish();
  }
  return formula;
}

/// A factor as the bits of its float32: the text says exactly which it is.
Json derived_to_json(const std::vector<DerivedExtent>& derived) {
  Json result = Json::array();
  for (const DerivedExtent& extent : derived) {
    if (extent.formula) {
      result.push_back({{"formula", extent.formula->to_string()}});
      continue;
    }
    Json json = formula_to_json(extent.of);
    json["factor_bits"] = std::bit_cast<uint32_t>(extent.factor);
    json["most"] = std::min(extent.most, kMaxFormulaNumber);
    if (extent.least >= -kMaxFormulaNumber) json["least"] = extent.least;
    if (extent.ratio)
      json["ratio"] = {{"up", formula_to_json(extent.ratio->up)},
                       {"down", formula_to_json(extent.ratio->down)}};
    if (extent.rounds) json["rounds"] = 1;
    result.push_back(std::move(json));
  }
  return result;
}

namespace {

tensormill::Extent extent_from_json(JsonFields& fields, std::string_view key,
                                    std::span<const std::string> free_dims) {
  try {
    return tensormill::Extent::parse(fields.text(key)).bound_to(free_dims);
  } catch (const Error& error) {
    throw_invalid(fields.pointer_to(key), std::string(error.message()));
  }
}

constexpr std::array<std::string_view, 6> kRelations = {"==", "!=", "<", "<=", ">", ">="};

bool holds(std::string_view relation, int64_t a, int64_t b) {
  if (relation == "==") return a == b;
  if (relation == "!=") return a != b;
  if (relation == "<") return a < b;
  if (relation == "<=") return a <= b;
  return relation == ">" ? a > b : a >= b;
}

}  // namespace

std::vector<DerivedExtent> derived_from_json(JsonFields& set, std::span<const std::string> names) {
  const size_t free_dims = names.size();
  std::vector<DerivedExtent> derived;
  if (!set.has("derived")) return derived;
  const Json& items = set.array("derived", kMaxDerivedExtents);
  for (size_t i = 0; i < items.size(); ++i) {
    JsonFields fields(items[i], set.pointer_to("derived") + "/" + std::to_string(i));
    if (fields.has("formula")) {
      derived.push_back({{}});
      derived.back().formula = extent_from_json(fields, "formula", names);
      fields.finish();
      continue;
    }
    const auto bits = static_cast<uint32_t>(
        fields.integer("factor_bits", 0, static_cast<int64_t>(std::numeric_limits<uint32_t>::max())));
    const float factor = std::bit_cast<float>(bits);
    if (!(factor > 0) || !std::isfinite(factor))
      throw_invalid(fields.pointer_to("factor_bits"), "no positive number");
    DerivedExtent extent{formula_from_json(fields, free_dims + i), factor,
                         fields.integer("most", 0, kMaxFormulaNumber)};
    if (fields.has("least")) extent.least = fields.integer("least", -kMaxFormulaNumber, kMaxFormulaNumber);
    if (fields.has("ratio")) extent.ratio = ratio_from_json(fields, free_dims + i);
    extent.rounds = fields.integer_or("rounds", 0, 0, 1) != 0;
    derived.push_back(std::move(extent));
    fields.finish();
  }
  return derived;
}

Json guard_to_json(const PlanGuard& guard) {
  return {{"left", guard.left.to_string()},
          {"relation", guard.relation},
          {"right", guard.right.to_string()},
          {"node", guard.node}};
}

PlanGuard guard_from_json(JsonFields& fields, std::span<const std::string> free_dims) {
  PlanGuard guard{extent_from_json(fields, "left", free_dims), extent_from_json(fields, "right", free_dims),
                  fields.text("relation"), fields.text("node")};
  if (std::find(kRelations.begin(), kRelations.end(), guard.relation) == kRelations.end())
    throw_invalid(fields.pointer_to("relation"), "no relation of two numbers");
  return guard;
}

Json guards_to_json(const std::vector<PlanGuard>& guards) {
  Json result = Json::array();
  for (const PlanGuard& guard : guards) result.push_back(guard_to_json(guard));
  return result;
}

std::vector<PlanGuard> guards_from_json(JsonFields& set, std::string_view key,
                                        std::span<const std::string> dims) {
  std::vector<PlanGuard> guards;
  if (!set.has(key)) return guards;
  const Json& items = set.array(key, kMaxPlanGuards);
  for (size_t i = 0; i < items.size(); ++i) {
    JsonFields fields(items[i], set.pointer_to(key) + "/" + std::to_string(i));
    guards.push_back(guard_from_json(fields, dims));
    fields.finish();
  }
  return guards;
}

Json run_dims_to_json(const std::vector<RunDim>& dims) {
  Json result = Json::array();
  for (const RunDim& dim : dims) {
    Json json = {{"name", dim.name}, {"step", dim.step}, {"element", dim.element}, {"sample", dim.sample}};
    if (dim.least) json["least"] = *dim.least;
    result.push_back(std::move(json));
  }
  return result;
}

std::vector<RunDim> run_dims_from_json(JsonFields& set) {
  std::vector<RunDim> dims;
  if (!set.has("run_dims")) return dims;
  const Json& items = set.array("run_dims", kMaxRunDims);
  for (size_t i = 0; i < items.size(); ++i) {
    JsonFields fields(items[i], set.pointer_to("run_dims") + "/" + std::to_string(i));
    RunDim dim{fields.text("name"), static_cast<int32_t>(fields.integer("step", 0, kMaxPlanSteps - 1)),
               static_cast<int32_t>(fields.integer("element", 0, kMaxRunDims - 1)), std::nullopt,
               fields.integer("sample", -kMaxFormulaNumber, kMaxFormulaNumber)};
    if (fields.has("least")) dim.least = fields.integer("least", -kMaxFormulaNumber, kMaxFormulaNumber);
    fields.finish();
    dims.push_back(std::move(dim));
  }
  return dims;
}

std::optional<std::string> broken_by(const PlanGuard& guard, std::span<const int64_t> dims) {
  const std::optional<int64_t> left = guard.left.evaluate(dims), right = guard.right.evaluate(dims);
  if (left && right && holds(guard.relation, *left, *right)) return std::nullopt;
  const auto side = [](const tensormill::Extent& formula, const std::optional<int64_t>& value) {
    const std::string text = formula.to_string();
    return formula.constant() ? text : text + " (" + (value ? std::to_string(*value) : "no number") + ")";
  };
  return (guard.node.empty() ? std::string() : "node \"" + guard.node + "\": ") + side(guard.left, left) +
         " has to be " + guard.relation + " " + side(guard.right, right);
}

}  // namespace tensormill::package
