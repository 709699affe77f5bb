#include "runtime/package/plan_formulas.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "runtime/package/plan_set.h"

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

std::vector<DerivedExtent> derived_from_json(JsonFields& set, size_t free_dims) {
  std::vector<DerivedExtent> derived;
  if (!set.has("derived")) return derived;
  const Json& items = set.array("derived", kMaxDerivedExtents);
  for (size_t i = 0; i < items.size(); ++i) {
    JsonFields fields(items[i], set.pointer_to("derived") + "/" + std::to_string(i));
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

}  // namespace tensormill::package
