// The values of api/http: headers, targets, bodies, times, entity tags, routes.
#include <fcntl.h>
#include <gtest/gtest.h>

#include "api/http/conditional.h"
#include "api/http/problem.h"
#include "api/http/router.h"
#include "api/http/target.h"
#include "api/http/tensor_body.h"
#include "api/http/time.h"
#include "api/http/trace_context.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/base/percent.h"

namespace tensormill::http {
namespace {

TEST(HeadersTest, NamesHaveNoCaseAndOrderIsKept) {
  Headers headers;
  headers.add("A", "1");
  headers.add("b", "  2\t");
  headers.add("a", "3");
  EXPECT_EQ(headers.get("B"), "2");
  EXPECT_EQ(headers.get_all("A"), (std::vector<std::string_view>{"1", "3"}));
  headers.set("A", "4");
  EXPECT_EQ(headers.fields().size(), 2u);
  EXPECT_EQ(headers.fields().back().second, "4");
}

TEST(HeadersTest, RefusesBytesThatSplitAMessage) {
  Headers headers;
  EXPECT_THROW(headers.add("A", "x\r\nEvil: 1"), InternalError);
  EXPECT_THROW(headers.add("A\n", "x"), InternalError);
  EXPECT_THROW(headers.add("A", std::string_view("x\0", 2)), InternalError);
}

TEST(Lists, AreSplitAndTrimmed) {
  EXPECT_EQ(split_list(" a ,, b,c d,"), (std::vector<std::string_view>{"a", "b", "c d"}));
  EXPECT_TRUE(split_list("").empty());
}

TEST(TraceContexts, AreTakenWhenTheyAreWellFormed) {
  const std::string trace = "0af7651916cd43dd8448eb211c80319c";
  const std::string parent = "b7ad6b7169203331";
  EXPECT_EQ(trace_id_of("00-" + trace + "-" + parent + "-01"), trace);
  EXPECT_EQ(trace_id_of("cc-" + trace + "-" + parent + "-01-what.comes"), trace);
  for (const std::string& wrong :
       {std::string(), "00-" + trace, "00-" + trace + "-" + parent, "ff-" + trace + "-" + parent + "-01",
        "00-" + trace + "-" + parent + "-01-more", "00-" + trace + "-" + parent + "-01x",
        "00-0AF7651916CD43DD8448EB211C80319C-" + parent + "-01",
        "00-" + std::string(32, '0') + "-" + parent + "-01", "00-" + trace + "-0000000000000000-01",
        "00_" + trace + "-" + parent + "-01"}) {
    EXPECT_EQ(trace_id_of(wrong), "") << wrong;
  }
  // Only a trace that somebody records can be looked at.
  Headers headers;
  EXPECT_EQ(recorded_trace_of(headers), "");
  headers.set("traceparent", "00-" + trace + "-" + parent + "-01");
  EXPECT_EQ(recorded_trace_of(headers), trace);
  headers.set("traceparent", "00-" + trace + "-" + parent + "-02");
  EXPECT_EQ(recorded_trace_of(headers), "");
}

TEST(Targets, AreDecoded) {
  Request request;
  parse_target("/v1/a%20b/%E2%82%AC/?x=1+2&y=%2B&flag&&z=", request);
  EXPECT_EQ(request.segments, (std::vector<std::string>{"v1", "a b", "\xE2\x82\xAC", ""}));
  EXPECT_EQ(request.query_value("x"), "1 2");
  EXPECT_EQ(request.query_value("y"), "+");
  EXPECT_EQ(request.query_value("flag"), "");
  EXPECT_EQ(request.query.size(), 4u);
}

TEST(Targets, AbsoluteFormReplacesHost) {
  Request request;
  request.headers.add("Host", "ignored");
  parse_target("http://evil.example:80/a?b=c", request);
  EXPECT_EQ(request.headers.get("Host"), "evil.example:80");
  EXPECT_EQ(request.segments, std::vector<std::string>{"a"});
  Request bare;
  parse_target("http://localhost", bare);
  EXPECT_TRUE(bare.segments.empty());
}

TEST(Targets, EncodingDecodes) {
  const std::string text = "a b/c?d=e&f%\xC3\xA9~";
  EXPECT_EQ(percent_decode(percent_encode(text), false), text);
}

TEST(Problems, AreReadAsTheErrorsThatTheyTell) {
  const Error told(ErrorCode::kInvalidRequest, "two members are wrong",
                   {{"/a", "no text"}, {"/b", "past 7"}});
  Response response = problem_response(told, "id");
  const Error read = error_of_problem(parse_json(std::get<std::string>(response.body)));
  EXPECT_EQ(read.code(), told.code());
  EXPECT_EQ(read.message(), told.message());
  ASSERT_EQ(read.details().size(), 2u);
  EXPECT_EQ(read.details()[1].pointer, "/b");
  EXPECT_EQ(read.details()[1].detail, "past 7");
  EXPECT_EQ(error_of_problem(parse_json(R"({"code":"of_tomorrow","detail":""})")).code(),
            ErrorCode::kInternal);
  for (const char* text : {"{}", "[]", R"({"code":"io_error"})", R"({"code":"io_error","detail":7})"})
    EXPECT_THROW(error_of_problem(parse_json(text)), Json::exception) << text;
}

TEST(Queries, AreTyped) {
  Request request;
  parse_target("/?n=5&yes=1&no=0&bad=x", request);
  EXPECT_EQ(request.query_int("n", 0, 0, 10), 5);
  EXPECT_EQ(request.query_int("absent", 7, 0, 10), 7);
  EXPECT_THROW(request.query_int("n", 0, 6, 10), Error);
  EXPECT_THROW(request.query_int("bad", 0, 0, 10), Error);
  EXPECT_TRUE(request.query_flag("yes"));
  EXPECT_FALSE(request.query_flag("no"));
  EXPECT_FALSE(request.query_flag("absent"));
  EXPECT_THROW(request.query_flag("bad"), Error);
}

TEST(Times, AreFormatted) {
  EXPECT_EQ(format_timestamp(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(format_timestamp(1709251199007), "2024-02-29T23:59:59.007Z");
  EXPECT_EQ(format_timestamp(-1), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(format_http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
}

TEST(Bodies, LimitIsExact) {
  const auto body = std::make_shared<BytesBody>("12345");
  LimitedBody fits(body, 5, "the limit");
  EXPECT_EQ(read_all(fits), "12345");
  EXPECT_THROW(LimitedBody(std::make_shared<BytesBody>("123456"), 5, "the limit"), Error);
}

TEST(Bodies, FilesAreReadInParts) {
  const std::string path = testing::TempDir() + "/tensormill_http_content";
  write_file(path, "0123456789");
  FileContent content(FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), 2, 5);
  std::array<std::byte, 4> buffer{};
  EXPECT_EQ(content.size(), 5u);
  EXPECT_EQ(content.read_at(3, buffer), 2u);
  EXPECT_EQ(static_cast<char>(buffer[0]), '5');
  EXPECT_EQ(content.read_at(5, buffer), 0u);
  FileContent shrunk(FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), 8, 5);
  EXPECT_THROW(shrunk.read_at(0, buffer), Error);
  ::unlink(path.c_str());
}

TEST(Etags, AreListed) {
  EXPECT_TRUE(etag_listed("*", "x"));
  EXPECT_TRUE(etag_listed("\"a\", \"x\"", "x"));
  EXPECT_TRUE(etag_listed("W/\"x\"", "x"));
  EXPECT_FALSE(etag_listed("x", "x"));
  EXPECT_FALSE(etag_listed("\"xy\"", "x"));
}

TEST(Routes, LiteralsWinOverParameters) {
  Router router;
  router.add("GET", "/a/{x}", 1);
  router.add("GET", "/a/b", 2);
  router.add("DELETE", "/a/{x}", 3);
  router.add("GET", "/", 4);
  EXPECT_EQ(router.match("GET", {"a", "b"}).route, 2);
  const Router::Match match = router.match("HEAD", {"a", "c"});
  EXPECT_EQ(match.route, 1);
  EXPECT_EQ(match.parameters.at("x"), "c");
  EXPECT_EQ(router.match("GET", {}).route, 4);
  EXPECT_EQ(router.match("GET", {"a", ""}).route, -1);
  EXPECT_TRUE(router.match("GET", {"z"}).allowed.empty());
  EXPECT_EQ(router.match("PUT", {"a", "b"}).allowed,
            (std::vector<std::string>{"DELETE", "GET", "HEAD", "OPTIONS"}));
}

}  // namespace
}  // namespace tensormill::http
