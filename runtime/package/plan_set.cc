#include "runtime/package/plan_set.h"

#include <algorithm>
#include <limits>
#include <set>

#include "runtime/base/error.h"
#include "runtime/base/shape_buckets.h"
#include "runtime/base/tensor.h"
#include "runtime/package/branches.h"
#include "runtime/package/json_fields.h"
#include "runtime/package/plan_formulas.h"
#include "runtime/package/segments.h"

namespace tensormill::package {

namespace {

Json holes_to_json(const std::vector<PlanHole>& holes) {
  Json result = Json::array();
  for (const PlanHole& hole : holes) {
    Json json = formula_to_json(hole.value);
    json["owner"] = hole.owner;
    json["position"] = hole.position;
    result.push_back(std::move(json));
  }
  return result;
}

std::vector<PlanHole> holes_from_json(JsonFields& set, std::string_view key, size_t free_dims) {
  std::vector<PlanHole> holes;
  const Json& items = set.array(key, kMaxPlanBuffers);
  for (size_t i = 0; i < items.size(); ++i) {
    JsonFields fields(items[i], set.pointer_to(key) + "/" + std::to_string(i));
    PlanHole hole;
    hole.owner = static_cast<int32_t>(fields.integer("owner", 0, kMaxPlanBuffers - 1));
    hole.position = static_cast<int32_t>(fields.integer("position", 0, kMaxStepArguments - 1));
    hole.value = formula_from_json(fields, free_dims);
    fields.finish();
    holes.push_back(std::move(hole));
  }
  return holes;
}

Json empties_to_json(const std::vector<EmptyArguments>& empties) {
  Json result = Json::array();
  for (const EmptyArguments& empty : empties) {
    result.push_back({{"step", empty.step}, {"arguments", empty.arguments}});
    if (empty.is_any) result.back()["any"] = 1;
  }
  return result;
}

Json generic_to_json(const GenericPlan& generic) {
  Json json = {{"dims", generic.dims},
               {"multiples", generic.multiples},
               {"minimums", generic.minimums},
               {"plan", parse_json(plan_to_json(generic.plan))},
               {"buffer_holes", holes_to_json(generic.buffer_holes)},
               {"step_holes", holes_to_json(generic.step_holes)}};
  if (!generic.derived.empty()) json["derived"] = derived_to_json(generic.derived);
  if (!generic.empties.empty()) json["empties"] = empties_to_json(generic.empties);
  if (!generic.guards.empty()) json["guards"] = guards_to_json(generic.guards);
  if (!generic.run_dims.empty()) json["run_dims"] = run_dims_to_json(generic.run_dims);
  if (!generic.run_guards.empty()) json["run_guards"] = guards_to_json(generic.run_guards);
  return json;
}

Json model_to_json(const KeptModel& model) {
  Json files = Json::array();
  for (const KeptModel::File& file : model.files)
    files.push_back({{"name", file.name}, {"params_offset", file.params_offset}, {"bytes", file.bytes}});
  return {{"files", std::move(files)}, {"options", model.options}};
}

KeptModel model_from_json(const Json& json) {
  JsonFields fields(json, "/model");
  KeptModel model;
  const Json& items = fields.array("files", kMaxModelFiles);
  for (size_t i = 0; i < items.size(); ++i) {
    JsonFields file(items[i], fields.pointer_to("files") + "/" + std::to_string(i));
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    model.files.push_back(
        {file.text("name"), file.integer("params_offset", 0, kMost), file.integer("bytes", 0, kMost)});
    file.finish();
  }
  model.options = fields.text("options");
  fields.finish();
  return model;
}

void check_model(const KeptModel& model, int64_t params_bytes) {
  if (model.files.empty()) throw_invalid("/model/files", "there is none");
  std::set<std::string> names;
  for (size_t i = 0; i < model.files.size(); ++i) {
    const KeptModel::File& file = model.files[i];
    const std::string pointer = "/model/files/" + std::to_string(i);
    if (!names.insert(file.name).second) throw_invalid(pointer, "two files have the same name");
    if (file.params_offset % static_cast<int64_t>(kTensorAlignment) != 0 ||
        file.params_offset > params_bytes || file.bytes > params_bytes - file.params_offset)
      throw_invalid(pointer, "it does not lie in mod.params");
  }
}

std::vector<EmptyArguments> empties_from_json(JsonFields& set) {
  std::vector<EmptyArguments> empties;
  if (!set.has("empties")) return empties;
  const Json& items = set.array("empties", kMaxPlanBuffers);
  for (size_t i = 0; i < items.size(); ++i) {
    JsonFields fields(items[i], set.pointer_to("empties") + "/" + std::to_string(i));
    EmptyArguments empty;
    empty.step = static_cast<int32_t>(fields.integer("step", 0, kMaxPlanBuffers - 1));
    for (const int64_t argument : fields.integers("arguments", 0, kMaxStepArguments - 1, kMaxStepArguments))
      empty.arguments.push_back(static_cast<int32_t>(argument));
    if (!std::is_sorted(empty.arguments.begin(), empty.arguments.end()))
      throw_invalid(fields.pointer_to("arguments"), "they are not in order");
    empty.is_any = fields.integer_or("any", 0, 0, 1) != 0;
    fields.finish();
    empties.push_back(std::move(empty));
  }
  return empties;
}

/// Plans are texts in mod.json, so that one reader checks them all.
ExecPlan plan_member(JsonFields& fields) { return plan_from_json(canonical_json(fields.object("plan"))); }

std::vector<int64_t> dims_member(JsonFields& fields, size_t count, int64_t least = 1) {
  std::vector<int64_t> dims = fields.integers("dims", least, kMaxFreeDim, kMaxFreeDims);
  if (dims.size() != count) throw_invalid(fields.pointer_to("dims"), "one value for each free dim");
  return dims;
}

void check_input_shapes(const PlanSet& set) {
  const std::set<std::string> names(set.free_dims.begin(), set.free_dims.end());
  if (names.size() != set.free_dims.size() || names.count("") != 0)
    throw_invalid("/free_dims", "a name is empty or stands twice");
  std::set<std::string> used;
  for (const DimShape& shape : set.input_shapes) {
    for (const Dim& dim : shape) {
      if (const std::string* name = std::get_if<std::string>(&dim)) used.insert(*name);
    }
  }
  if (used != names) throw_invalid("/input_shapes", "the free dims are not those that are declared");
}

/// The plan's inputs have the extents that the free dims' values say.
void check_plan(const PlanSet& set, const ExecPlan& plan, const std::vector<int64_t>& dims,
                const ExecPlan& first, const std::string& pointer) {
  const auto same = [](const std::vector<Port>& a, const std::vector<Port>& b, bool in_rank) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const Port& x, const Port& y) {
      return x.name == y.name && x.dtype == y.dtype && (!in_rank || x.shape.size() == y.shape.size());
    });
  };
  // An output's rank may depend on an extent: Squeeze without axes drops those of 1.
  if (!same(plan.inputs, first.inputs, true) || !same(plan.outputs, first.outputs, false) ||
      plan.params_bytes != first.params_bytes || plan.inputs.size() != set.input_shapes.size()) {
    throw_invalid(pointer, "inputs, outputs or weights are not those of the first plan");
  }
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const DimShape& declared = set.input_shapes[i];
    DimShape expected;
    for (const Dim& dim : declared) {
      const std::string* name = std::get_if<std::string>(&dim);
      if (name == nullptr) {
        expected.push_back(dim);
        continue;
      }
      const auto found = std::find(set.free_dims.begin(), set.free_dims.end(), *name);
      expected.emplace_back(dims[static_cast<size_t>(found - set.free_dims.begin())]);
    }
    if (expected != plan.inputs[i].shape)
      throw_invalid(pointer, "input \"" + plan.inputs[i].name + "\" has not the declared shape");
  }
}

void check_holes(const GenericPlan& generic, const std::string& pointer) {
  const auto fail = [&](const char* list) { throw_invalid(pointer + list, "a hole names nothing"); };
  for (const PlanHole& hole : generic.buffer_holes) {
    if (static_cast<size_t>(hole.owner) >= generic.plan.buffers.size()) fail("/buffer_holes");
    const Buffer& buffer = generic.plan.buffers[static_cast<size_t>(hole.owner)];
    const bool fixed = buffer.kind == BufferKind::kConstant;
    if (fixed || static_cast<size_t>(hole.position) >= buffer.shape.size()) fail("/buffer_holes");
  }
  for (const PlanHole& hole : generic.step_holes) {
    if (static_cast<size_t>(hole.owner) >= generic.plan.steps.size()) fail("/step_holes");
    const Step& step = generic.plan.steps[static_cast<size_t>(hole.owner)];
    if (static_cast<size_t>(hole.position) >= step.dims.size()) fail("/step_holes");
  }
}

/// What is written is what can be read.
void check_formulas(const GenericPlan& generic, const std::string& pointer) {
  const auto check = [&](const auto& all, const char* list, const auto& formula_of) {
    for (const auto& each : all) {
      if (!fits_package(formula_of(each))) throw_invalid(pointer + list, "a formula is too large");
    }
  };
  const auto own = [](const auto& each) -> const DimFormula& { return each.value; };
  check(generic.buffer_holes, "/buffer_holes", own);
  check(generic.step_holes, "/step_holes", own);
  check(
      generic.derived, "/derived", [](const DerivedExtent& each) -> const auto& { return each; });
}

void check_set(const PlanSet& set) {
  check_input_shapes(set);
  if (set.variants.empty() && !set.generic) throw_invalid("/variants", "there is no plan");
  const ExecPlan& first = set.first();
  std::set<std::vector<int64_t>> seen;
  for (size_t i = 0; i < set.variants.size(); ++i) {
    const std::string pointer = "/variants/" + std::to_string(i);
    if (!seen.insert(set.variants[i].dims).second) throw_invalid(pointer, "two variants have the same dims");
    check_plan(set, set.variants[i].plan, set.variants[i].dims, first, pointer);
  }
  const auto check_generic = [&](const GenericPlan& generic, const std::string& pointer) {
    check_plan(set, generic.plan, generic.dims, first, pointer);
    check_holes(generic, pointer);
    for (const Branch& branch : branches_of(generic.plan)) {
      if (branch.guards.empty()) continue;
      if (branch.dims != set.free_dims)
        throw_invalid(pointer + "/plan/steps/" + std::to_string(branch.step), "it has other free dims");
    }
    check_formulas(generic, pointer);
    check_run_dims(generic, set.free_dims, pointer);
  };
  if (set.generic) check_generic(*set.generic, "/generic");
  if (!set.special.empty() && !set.generic) throw_invalid("/special", "there is no generic plan");
  for (size_t i = 0; i < set.special.size(); ++i)
    check_generic(set.special[i], "/special/" + std::to_string(i));
  if (set.model) check_model(*set.model, first.params_bytes);
}

GenericPlan generic_from_json(const Json& json, const std::string& pointer,
                              std::span<const std::string> names) {
  const size_t free_dims = names.size();
  JsonFields item(json, pointer);
  GenericPlan generic;
  generic.dims = dims_member(item, free_dims, 0);
  generic.multiples = item.integers("multiples", 1, kMaxFreeDim, kMaxFreeDims);
  if (generic.multiples.size() != free_dims)
    throw_invalid(item.pointer_to("multiples"), "one for each free dim");
  generic.minimums = item.integers("minimums", 0, kMaxFreeDim, kMaxFreeDims);
  if (generic.minimums.size() != free_dims)
    throw_invalid(item.pointer_to("minimums"), "one for each free dim");
  generic.plan = plan_member(item);
  generic.run_dims = run_dims_from_json(item);
  std::vector<std::string> all(names.begin(), names.end());
  for (const RunDim& run : generic.run_dims) all.push_back(run.name);
  generic.derived = derived_from_json(item, all);
  const size_t dims = all.size() + generic.derived.size();
  generic.buffer_holes = holes_from_json(item, "buffer_holes", dims);
  generic.step_holes = holes_from_json(item, "step_holes", dims);
  generic.empties = empties_from_json(item);
  generic.guards = guards_from_json(item, "guards", names);
  generic.run_guards = guards_from_json(item, "run_guards", all);
  item.finish();
  return generic;
}

/// Whether the text is a set's; else it is a plan's alone.
bool is_set(const Json& json) {
  if (!json.is_object() || !json.contains("format_version") || !json["format_version"].is_number_integer())
    return false;
  const auto version = json["format_version"].get<int64_t>();
  const auto refuse = [&](const std::string& whose, const std::string& then) {
    throw_invalid("/format_version", "the package is " + whose +
                                         " than this program: its plans have format " +
                                         std::to_string(version) + ", this program reads " +
                                         std::to_string(kPlanSetFormatVersion) + then);
  };
  if (version > kPlanSetFormatVersion) refuse("newer", "");
  // Below that are a plan's own versions.
  constexpr int64_t kFirstOfSets = 3;
  if (version >= kFirstOfSets && version < kPlanSetFormatVersion)
    refuse("older", " alone; compile the model again");
  return version == kPlanSetFormatVersion;
}

PlanSet read_set(const Json& json) {
  JsonFields fields(json, "");
  PlanSet set;
  fields.integer("format_version", kPlanSetFormatVersion, kPlanSetFormatVersion);
  set.free_dims = fields.texts("free_dims", kMaxFreeDims);
  const Json& shapes = fields.array("input_shapes", kMaxPlanBuffers);
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Json wrapped = {{"shape", shapes[i]}};
    JsonFields shape(wrapped, "/input_shapes/" + std::to_string(i));
    set.input_shapes.push_back(shape.dims("shape", kMaxRank));
  }
  const Json& variants = fields.array("variants", kMaxVariants);
  for (size_t i = 0; i < variants.size(); ++i) {
    JsonFields item(variants[i], "/variants/" + std::to_string(i));
    PlanVariant variant;
    variant.dims = dims_member(item, set.free_dims.size());
    variant.plan = plan_member(item);
    item.finish();
    set.variants.push_back(std::move(variant));
  }
  if (fields.has("generic")) {
    set.generic = generic_from_json(fields.object("generic"), "/generic", set.free_dims);
  }
  if (fields.has("special")) {
    const Json& items = fields.array("special", kMaxSpecialPlans);
    for (size_t i = 0; i < items.size(); ++i)
      set.special.push_back(generic_from_json(items[i], "/special/" + std::to_string(i), set.free_dims));
  }
  if (fields.has("model")) set.model = model_from_json(fields.object("model"));
  fields.finish();
  return set;
}

}  // namespace

std::vector<bool> whole_views(const GenericPlan& generic) {
  const std::vector<Buffer>& buffers = generic.plan.buffers;
  std::vector<bool> is_free(buffers.size(), false), is_whole(buffers.size(), false);
  for (const PlanHole& hole : generic.buffer_holes) is_free[static_cast<size_t>(hole.owner)] = true;
  for (size_t i = 0; i < buffers.size(); ++i) {
    is_whole[i] = buffers[i].kind == BufferKind::kView &&
                  (is_free[i] || is_free[static_cast<size_t>(buffers[i].view_of)]);
  }
  return is_whole;
}

std::string plan_set_to_json(const PlanSet& set) {
  if (!set.is_dynamic()) {
    TM_CHECK(set.variants.size() == 1, "a fixed package has one plan");
    if (!set.model) return plan_to_json(set.variants.front().plan);
  }
  check_set(set);
  Json variants = Json::array();
  for (const PlanVariant& variant : set.variants)
    variants.push_back({{"dims", variant.dims}, {"plan", parse_json(plan_to_json(variant.plan))}});
  Json shapes = Json::array();
  for (const DimShape& shape : set.input_shapes) shapes.push_back(dims_to_json(shape));
  Json json = {{"format_version", kPlanSetFormatVersion},
               {"free_dims", set.free_dims},
               {"input_shapes", std::move(shapes)},
               {"variants", std::move(variants)}};
  if (set.generic) {
    json["generic"] = generic_to_json(*set.generic);
    for (const GenericPlan& special : set.special) json["special"].push_back(generic_to_json(special));
  }
  if (set.model) json["model"] = model_to_json(*set.model);
  return canonical_json(json);
}

PlanSet plan_set_from_json(std::string_view text) {
  try {
    const Json json = parse_json(text);
    if (!is_set(json)) {
      PlanSet set;
      set.variants.push_back({{}, plan_from_json(text)});
      for (const Port& port : set.variants.front().plan.inputs) set.input_shapes.push_back(port.shape);
      return set;
    }
    PlanSet set = read_set(json);
    if (!set.is_dynamic() && !(set.model && set.variants.size() == 1 && !set.generic))
      throw_invalid("/free_dims", "there is none");
    check_set(set);
    return set;
  } catch (const Error& error) {
    Error wrapped(ErrorCode::kInvalidPackage, error.message(), error.details());
    if (!std::string(error.message()).starts_with(kPlanMember)) wrapped.add_context(kPlanMember);
    throw wrapped;
  }
}

}  // namespace tensormill::package
