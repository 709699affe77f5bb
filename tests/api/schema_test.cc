// JSON bodies: all mistakes at once, with pointers.
#include <gtest/gtest.h>

#include "api/schema/print.h"
#include "api/schema/reader.h"
#include "api/schema/requests.h"
#include "runtime/base/digest.h"

namespace tensormill::schema {
namespace {

/// Pointers of the mistakes that `read` finds.
template <typename Read>
std::vector<std::string> mistakes(const Read& read) {
  std::vector<std::string> pointers;
  try {
    read();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.message();
    for (const ErrorDetail& detail : error.details()) pointers.push_back(detail.pointer);
  }
  return pointers;
}

std::vector<std::string> compile_mistakes(const std::string& members) {
  return mistakes(
      [&] { read_job_request(R"({"kind":"compile","model":"m","target":"llvm",)" + members + "}"); });
}

std::vector<std::string> deployment_mistakes(const std::string& members) {
  const std::string package = Digest::of("x").text();
  return mistakes([&] { read_deployment_spec("{\"package\":\"" + package + "\"," + members + "}"); });
}

using Pointers = std::vector<std::string>;

services::CompileRequest read_compile(const char* text) {
  return std::get<services::CompileRequest>(read_job_request(text));
}

TEST(PrintPackages, APageIsWhatItsItemsAre) {
  services::PackageInfo package;
  package.id = Digest::of("package");
  package.metadata_json = R"({"kernels":[1,{"name":"}\"\u00e9"}],
                              "ops":{}})";
  package.deployments = {"digits"};
  services::Page<services::PackageInfo> page;
  EXPECT_EQ(parse_json(print(page)), page_json(page));
  page.items = {package, package};
  page.items.back().metadata_json = "";
  page.next_cursor = "7";
  EXPECT_EQ(parse_json(print(page)), page_json(page));
}

TEST(CompileBody, ReadsEverything) {
  const auto request = read_compile(
      R"({"kind":"compile","model":"m","target":{"kind":"llvm","mcpu":"haswell"},"opt_level":1,
          "input_shapes":{"data":["N",3,224,224],"s":[]},"shape_buckets":{"N":[1,2,4]},"outputs":["a","b"],
          "tuning_records":null,"pass_config":{"a":true,"b":3,"c":"x"},"disabled_pass":["fuse"],
          "input_values":{"sr":16000,"axes":[[0],[1]],"none":null},"desired_layout":"NHWC",
          "desired_layout_ops":["conv","max_pool"],"force":true})");
  EXPECT_EQ(request.target, R"({"kind":"llvm","mcpu":"haswell"})");
  EXPECT_EQ(request.opt_level, 1);
  EXPECT_EQ(to_string(request.input_shapes.at("data")), "[N,3,224,224]");
  EXPECT_TRUE(request.input_shapes.at("s").empty());
  EXPECT_EQ(request.input_values, R"({"axes":[[0],[1]],"none":null,"sr":16000})");
  EXPECT_EQ(request.shape_buckets.at("N"), (std::vector<int64_t>{1, 2, 4}));
  EXPECT_EQ(request.outputs, (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(request.tuning_records.has_value());
  EXPECT_EQ(request.pass_config.at("a"), "true");
  EXPECT_EQ(request.pass_config.at("b"), "3");
  EXPECT_EQ(request.disabled_pass, Pointers{"fuse"});
  EXPECT_EQ(request.desired_layout, "NHWC");
  EXPECT_EQ(request.desired_layout_ops, (Pointers{"conv", "max_pool"}));
  EXPECT_TRUE(request.force);
}

TEST(CompileBody, TakesTheTemplateOfTheDocs) {
  const auto request = read_compile(
      R"({"kind":"compile","model":"N","target":"llvm -mcpu=native","opt_level":3,"input_shapes":{"data":["N",3,224,224]},
          "shape_buckets":{"N":[1,2,4,8]},"outputs":null,"tuning_records":"auto","pass_config":{},"disabled_pass":[],
          "desired_layout":null,"force":false})");
  EXPECT_FALSE(request.outputs.has_value());
  EXPECT_EQ(request.tuning_records, "auto");
}

TEST(CompileBody, ReportsAllMistakesAtOnce) {
  EXPECT_EQ(mistakes([] { read_job_request(R"({"kind":"compile","opt_level":5,"outpts":[],"force":1})"); }),
            (Pointers{"/model", "/target", "/opt_level", "/force", "/outpts"}));
}

TEST(CompileBody, PointsAtEachMistake) {
  EXPECT_EQ(compile_mistakes(R"("opt_level":"3")"), Pointers{"/opt_level"});
  EXPECT_EQ(compile_mistakes(R"("opt_level":3.0)"), Pointers{"/opt_level"});
  EXPECT_EQ(compile_mistakes(R"("opt_level":18446744073709551615)"), Pointers{"/opt_level"});
  EXPECT_EQ(compile_mistakes(R"("opt_level":null)"), Pointers{"/opt_level"});
  EXPECT_EQ(compile_mistakes(R"("input_shapes":{"a/b":[1,-1,1.5,null,""]})"),
            (Pointers{"/input_shapes/a~1b/1", "/input_shapes/a~1b/2", "/input_shapes/a~1b/3",
                      "/input_shapes/a~1b/4"}));
  EXPECT_EQ(compile_mistakes(R"("input_shapes":{"a":3})"), Pointers{"/input_shapes/a"});
  EXPECT_EQ(compile_mistakes(R"("input_shapes":[])"), Pointers{"/input_shapes"});
  EXPECT_EQ(compile_mistakes(R"("input_values":{"a":"1","b":[1,[{}]],"c":[1,null]})"),
            (Pointers{"/input_values/a", "/input_values/b"}));
  EXPECT_EQ(compile_mistakes(R"("input_values":[1])"), Pointers{"/input_values"});
  EXPECT_EQ(compile_mistakes(R"("shape_buckets":{"N":[2,2]})"), Pointers{"/shape_buckets/N/1"});
  EXPECT_EQ(compile_mistakes(R"("shape_buckets":{"N":[]})"), Pointers{"/shape_buckets/N"});
  EXPECT_EQ(compile_mistakes(R"("outputs":["a",1])"), Pointers{"/outputs/1"});
  EXPECT_EQ(compile_mistakes(R"("outputs":[])"), Pointers{"/outputs"});
  EXPECT_EQ(compile_mistakes(R"("tuning_records":"yes")"), Pointers{"/tuning_records"});
  EXPECT_EQ(compile_mistakes(R"("desired_layout":"NCHW8c")"), Pointers{"/desired_layout"});
  EXPECT_EQ(compile_mistakes(R"("desired_layout_ops":["conv"])"), Pointers{"/desired_layout_ops"});
  EXPECT_EQ(compile_mistakes(R"("desired_layout":"NHWC","desired_layout_ops":["conv",1])"),
            Pointers{"/desired_layout_ops/1"});
  EXPECT_EQ(compile_mistakes(R"("pass_config":{"a":[]})"), Pointers{"/pass_config/a"});
}

TEST(CompileBody, RefusesOtherKinds) {
  EXPECT_EQ(mistakes([] { read_job_request(R"({"kind":"bake","model":"m","target":"t"})"); }),
            Pointers{"/kind"});
}

TEST(TuneBody, ReadsEverything) {
  const std::string id = Digest::of("set").text();
  const auto request = std::get<services::TuneRequest>(read_job_request(
      R"({"kind":"tune","model":"m","target":"llvm","opt_level":2,"trials":64,"time_budget_s":1.5,"tuner":"random",
          "autoscheduler":false,"tasks":"0,2","extents":{"N":[1,8],"H":"32..96:32"},"early_stopping":8,"prior_records":")" +
      id +
      R"(","exclusive":true,"threads":2,"number":3,"repeat":4,"min_repeat_ms":0.5,"seed":7,"force":true})"));
  EXPECT_EQ(request.compile.model, "m");
  EXPECT_EQ(request.compile.opt_level, 2);
  EXPECT_TRUE(request.compile.force);
  EXPECT_EQ(request.trials, 64);
  EXPECT_EQ(request.time_budget_s, 1.5);
  EXPECT_EQ(request.tuner, "random");
  EXPECT_EQ(request.tasks, "0,2");
  EXPECT_EQ(request.extents,
            (std::map<std::string, std::vector<int64_t>>{{"H", {32, 64, 96}}, {"N", {1, 8}}}));
  EXPECT_TRUE(request.compile.shape_buckets.empty());
  EXPECT_EQ(request.early_stopping, 8);
  EXPECT_EQ(request.prior_records, id);
  EXPECT_TRUE(request.exclusive);
  EXPECT_EQ(request.threads, 2);
  EXPECT_EQ(request.number, 3);
  EXPECT_EQ(request.repeat, 4);
  EXPECT_EQ(request.min_repeat_ms, 0.5);
  EXPECT_EQ(request.seed, 7);
}

TEST(TuneBody, PointsAtEachMistake) {
  EXPECT_EQ(mistakes([] {
              read_job_request(R"({"kind":"tune","model":"m","target":"t","trials":0,"time_budget_s":-1,
                  "tuner":"luck","prior_records":"x","repeat":0,"package":"p"})");
            }),
            (Pointers{"/trials", "/time_budget_s", "/tuner", "/prior_records", "/repeat", "/package"}));
  EXPECT_EQ(mistakes([] {
              read_job_request(R"({"kind":"tune","model":"m","target":"t",
                  "extents":{"H":"x","K":[],"M":3,"N":[8,1]}})");
            }),
            (Pointers{"/extents/H", "/extents/K", "/extents/M", "/extents/N/1"}));
  EXPECT_EQ(compile_mistakes(R"("extents":{"N":[1]})"), Pointers{"/extents"});
}

TEST(BenchmarkBody, ReadsEverythingAndNothingElse) {
  const auto request = std::get<services::BenchmarkRequest>(
      read_job_request(R"({"kind":"benchmark","package":"p","repeat":3,"number":2,"threads":1})"));
  EXPECT_EQ(request.package, "p");
  EXPECT_EQ(request.repeat, 3);
  EXPECT_EQ(request.number, 2);
  EXPECT_EQ(request.threads, 1);
  EXPECT_EQ(mistakes([] { read_job_request(R"({"kind":"benchmark","repeat":0,"model":"m"})"); }),
            (Pointers{"/package", "/repeat", "/model"}));
}

TEST(VerifyBody, ReadsEverythingAndNothingElse) {
  const std::string inputs = Digest::of("inputs").text();
  const auto request = std::get<services::VerifyRequest>(read_job_request(
      R"({"kind":"verify","package":"p","on":"board=rpi4","rtol":0.5,"atol":2,"timeout_s":9,"inputs":")" +
      inputs + R"("})"));
  EXPECT_EQ(request.package, "p");
  EXPECT_EQ(request.inputs, inputs);
  EXPECT_EQ(request.on, "board=rpi4");
  EXPECT_EQ(request.rtol, 0.5);
  EXPECT_EQ(request.atol, 2);
  EXPECT_EQ(request.timeout_s, 9);
  EXPECT_EQ(mistakes([] {
              read_job_request(R"({"kind":"verify","inputs":"x","rtol":-1,"timeout_s":0,"repeat":3})");
            }),
            (Pointers{"/package", "/inputs", "/rtol", "/timeout_s", "/repeat"}));
}

TEST(ReportBody, ReadsEverything) {
  const std::string inputs = Digest::of("inputs").text(), labels = Digest::of("labels").text();
  const auto request = std::get<services::ReportRequest>(read_job_request(
      R"({"kind":"report","models":["a","b"],"targets":["llvm","llvm -mcpu=native"],"opt_levels":[0,3],
          "layouts":["NHWC"],"input_shapes":{"x":[1,"N"]},"tuning_records":null,"inputs":")" +
      inputs + R"(","labels":")" + labels +
      R"(","classes":["zero","one"],"scores":"y","samples":7,"warmup":0,"repeat":2,"number":3,"threads":1,
          "time_budget_s":9})"));
  EXPECT_EQ(request.models, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(request.targets, (std::vector<std::string>{"llvm", "llvm -mcpu=native"}));
  EXPECT_EQ(request.opt_levels, (std::vector<int>{0, 3}));
  EXPECT_EQ(request.layouts, std::vector<std::string>{"NHWC"});
  EXPECT_EQ(request.input_shapes.at("x").size(), 2U);
  EXPECT_FALSE(request.tuning_records);
  EXPECT_EQ(request.inputs, inputs);
  EXPECT_EQ(request.labels, labels);
  EXPECT_EQ(request.classes, (std::vector<std::string>{"zero", "one"}));
  EXPECT_EQ(request.scores, "y");
  EXPECT_EQ(request.samples, 7);
  EXPECT_EQ(request.warmup, 0);
  EXPECT_EQ(request.repeat, 2);
  EXPECT_EQ(request.number, 3);
  EXPECT_EQ(request.threads, 1);
  EXPECT_EQ(request.time_budget_s, 9);
}

TEST(ReportBody, PointsAtEachMistake) {
  EXPECT_EQ(
      mistakes([] {
        read_job_request(R"({"kind":"report","models":[],"targets":[""],"opt_levels":[5],"layouts":["x"],
                  "inputs":"i","labels":"l","repeat":0,"time_budget_s":0,"model":"m"})");
      }),
      (Pointers{"/models", "/targets/0", "/opt_levels/0", "/layouts/0", "/inputs", "/labels", "/repeat",
                "/time_budget_s", "/model"}));
  // What a report costs has a bound that the body itself must keep.
  Json many = {{"kind", "report"}, {"inputs", Digest::of("inputs").text()}, {"opt_levels", {0, 1, 2, 3, 4}}};
  many["models"] = std::vector<std::string>(13, "m");
  EXPECT_EQ(mistakes([&] { read_job_request(many.dump()); }), Pointers{""});
  many["models"] = std::vector<std::string>(12, "m");
  EXPECT_EQ(std::get<services::ReportRequest>(read_job_request(many.dump())).models.size(), 12U);
}

TEST(CompileBody, RefusesWhatIsNoObject) {
  EXPECT_EQ(mistakes([] { read_job_request("[]"); }), Pointers{""});
  const std::string nested = std::string(100, '[') + std::string(100, ']');
  for (const std::string& text : {std::string(), std::string("{"), nested, std::string(R"({"a":1,"a":2})")}) {
    try {
      read_job_request(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidJson) << text;
    }
  }
}

TEST(DeploymentBody, ReadsEverything) {
  const auto spec = read_deployment_spec(
      "{\"package\":\"" + Digest::of("x").text() +
      R"(","version":"12","keep_versions":2,"instances":2,"max_batch":8,"max_delay_us":500,"max_queue":64,
          "warmup":false,"isolation":"none","labels":["zero","one"],"preprocess":{"resize":256,"crop":224,
          "mean":[0.485,0.456,0.406],"std":[0.229,0.224,0.225],"scale":0.00392,"layout":"NHWC","color":"gray"},
          "output":"probabilities"})");
  EXPECT_EQ(spec.version, "12");
  EXPECT_EQ(spec.labels, (std::vector<std::string>{"zero", "one"}));
  ASSERT_TRUE(spec.preprocess.has_value());
  EXPECT_EQ(spec.preprocess->resize, 256);
  EXPECT_EQ(spec.preprocess->std[2], 0.225);
  EXPECT_EQ(spec.preprocess->layout, "NHWC");
  EXPECT_EQ(spec.output, "probabilities");
  EXPECT_FALSE(spec.warmup);
}

TEST(DeploymentBody, PointsAtEachMistake) {
  EXPECT_EQ(deployment_mistakes(R"("version":"01")"), Pointers{"/version"});
  EXPECT_EQ(deployment_mistakes(R"("version":1)"), Pointers{"/version"});
  EXPECT_EQ(deployment_mistakes(R"("labels":"no digest")"), Pointers{"/labels"});
  EXPECT_EQ(deployment_mistakes(R"("labels":[1])"), Pointers{"/labels/0"});
  EXPECT_EQ(deployment_mistakes(R"("instances":0)"), Pointers{"/instances"});
  EXPECT_EQ(deployment_mistakes(R"("output":"softmax")"), Pointers{"/output"});
  EXPECT_EQ(deployment_mistakes(R"("preprocess":{"std":[0],"mean":[1,2],"size":3,"layout":"CHW"})"),
            (Pointers{"/preprocess/mean", "/preprocess/std/0", "/preprocess/layout", "/preprocess/size"}));
  EXPECT_EQ(mistakes([] { read_deployment_spec(R"({"package":"latest"})"); }), Pointers{"/package"});
}

TEST(DeploymentBody, RefusesPicturesPastTheRangeOfFloats) {
  const std::string package = Digest().text();
  for (const char* preprocess :
       {R"({"scale":1e300})", R"({"scale":1,"std":[1e-300]})", R"({"mean":[1e39]})"}) {
    const std::string body = R"({"package":")" + package + R"(","preprocess":)" + preprocess + "}";
    EXPECT_EQ(mistakes([&] { read_deployment_spec(body); }), Pointers{"/preprocess"}) << preprocess;
  }
}

// Numbers at and past the ends of what each member takes; 2^64 and 1e400 are no exceptions of another kind.
TEST(JobBody, NumbersOutsideTheirRangeAreMistakes) {
  for (const char* value : {"-1", "1.5", "1e2", "9223372036854775808", "18446744073709551615",
                            "18446744073709551616", "-9223372036854775809", "true", "\"1\""}) {
    const auto with = [&](const std::string& member) {
      return mistakes(
          [&] { read_job_request(R"({"kind":"compile","model":"m","target":"llvm",)" + member + "}"); });
    };
    EXPECT_EQ(with("\"opt_level\":" + std::string(value)), Pointers{"/opt_level"}) << value;
    if (std::string_view(value) == "-1" || std::string_view(value) == "\"1\"") continue;
    EXPECT_EQ(with(R"("input_shapes":{"x":[)" + std::string(value) + "]}"), Pointers{"/input_shapes/x/0"})
        << value;
  }
}

TEST(AnyBody, OfManyMistakesAFewAreShown) {
  std::string body = R"({"kind":"compile","model":"m","target":"llvm")";
  for (int i = 0; i < 20000; ++i) body += ",\"a" + std::to_string(i) + "\":0";
  try {
    read_job_request(body + "}");
    ADD_FAILURE() << "taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.details().size(), 100u);
    EXPECT_NE(error.message().find("and 19999 more"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace tensormill::schema
