// Uploads in parts, and copies.
#include <algorithm>
#include <array>

#include "runtime/base/error.h"
#include "storage/s3/s3_answers.h"
#include "storage/s3/s3_client.h"
#include "storage/s3/xml.h"

namespace tensormill::storage {
std::string S3Client::begin_upload(const std::string& key) {
  const HttpAnswer answer = exchange({"POST", full(key), {{"uploads", ""}}, {}, {}, 0}, kNoOther);
  std::string upload = parse_xml(answer.body).text_of("UploadId");
  if (upload.empty()) throw Error(ErrorCode::kUnavailable, "S3 has begun an upload without a name");
  return upload;
}

std::string S3Client::put_part(const std::string& key, const std::string& upload, int part,
                               std::string_view bytes) {
  const HttpAnswer answer =
      exchange({"PUT", full(key), {{"partNumber", std::to_string(part)}, {"uploadId", upload}}, {}, bytes, 0},
               kNoOther);
  std::string tag = answer.header("etag");
  if (tag.empty()) throw Error(ErrorCode::kUnavailable, "S3 has taken a part and given it no tag");
  return tag;
}

int S3Client::finish(const Request& request) {
  for (int tries = 1;; ++tries) {
    const HttpAnswer answer = exchange(request, kUndone);
    // The head goes out before the work is done, so an error may follow it.
    const bool is_done = answer.status / 100 == 2 && answer.body.find("<Error") == std::string::npos;
    if (is_done) return 200;
    if (answer.status == 404 || answer.status == 412 || answer.status == 501) return answer.status;
    if (tries >= options_.retries.attempts)
      throw_answer(answer, request.method, request.key, options_.bucket);
    pause(tries);
  }
}

bool S3Client::complete_upload(const std::string& key, const std::string& upload,
                               const std::vector<std::string>& tags, S3Condition condition) {
  std::string body = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (size_t i = 0; i < tags.size(); ++i) {
    body += "<Part><ETag>" + xml_escape(tags[i]) + "</ETag><PartNumber>" + std::to_string(i + 1) +
            "</PartNumber></Part>";
  }
  body += "</CompleteMultipartUpload>";
  Request request{"POST", full(key), {{"uploadId", upload}}, {}, body, tags.size() * options_.part_bytes};
  if (condition == S3Condition::kIfAbsent) request.headers = {{"if-none-match", "*"}};
  const int status = finish(request);
  if (status == 501 && condition == S3Condition::kIfAbsent)
    return complete_upload(key, upload, tags, S3Condition::kAlways);
  // An earlier attempt may have completed it, and its answer was lost.
  if (status == 404 && head(key)) return true;
  if (status == 200 || status == 412) return status == 200;
  throw Error(ErrorCode::kUnavailable, "S3 has lost the upload of " + request.key);
}

void S3Client::abort_upload(const std::string& key, const std::string& upload) {
  exchange({"DELETE", full(key), {{"uploadId", upload}}, {}, {}, 0}, kAbsent);
}

void S3Client::list_uploads(const std::string& folder, const std::function<void(const S3Object&)>& take) {
  std::string key, upload;
  bool more = true;
  while (more) {
    Request request{"GET", "", {{"uploads", ""}, {"prefix", full(folder)}}, {}, {}, 0};
    if (!key.empty()) request.query.emplace_back("key-marker", key);
    if (!upload.empty()) request.query.emplace_back("upload-id-marker", upload);
    const XmlElement page = parse_xml(exchange(request, kNoOther).body);
    for (const XmlElement& entry : page.children) {
      const std::string name = entry.text_of("Key");
      if (entry.name != "Upload" || !name.starts_with(options_.prefix)) continue;
      take({name.substr(options_.prefix.size()), 0, parse_iso_time(entry.text_of("Initiated")),
            entry.text_of("UploadId")});
    }
    key = page.text_of("NextKeyMarker");
    upload = page.text_of("NextUploadIdMarker");
    more = page.text_of("IsTruncated") == "true" && !key.empty();
  }
}

bool S3Client::copy(const std::string& from, const std::string& to, uint64_t bytes, S3Condition condition) {
  if (bytes > options_.copy_bytes) return copy_parts(from, to, bytes, condition);
  Request request{"PUT", full(to), {}, {}, {}, bytes};
  request.headers = {{"x-amz-copy-source", uri_escape(options_.bucket + "/" + full(from), true)}};
  if (condition == S3Condition::kIfAbsent) request.headers.emplace_back("if-none-match", "*");
  const int status = finish(request);
  if (status == 501 && condition == S3Condition::kIfAbsent)
    return copy(from, to, bytes, S3Condition::kAlways);
  if (status == 200 || status == 412) return status == 200;
  throw Error(ErrorCode::kUnavailable, "S3 has lost " + full(from) + ", which was to be copied");
}

bool S3Client::copy_parts(const std::string& from, const std::string& to, uint64_t bytes,
                          S3Condition condition) {
  const std::string upload = begin_upload(to);
  try {
    std::vector<std::string> tags;
    for (uint64_t begin = 0; begin < bytes; begin += options_.copy_bytes) {
      const uint64_t end = std::min(bytes, begin + options_.copy_bytes);
      Request request{
          "PUT",
          full(to),
          {{"partNumber", std::to_string(tags.size() + 1)}, {"uploadId", upload}},
          {{"x-amz-copy-source", uri_escape(options_.bucket + "/" + full(from), true)},
           {"x-amz-copy-source-range", "bytes=" + std::to_string(begin) + "-" + std::to_string(end - 1)}},
          {},
          end - begin};
      const HttpAnswer answer = exchange(request, kNoOther);
      tags.push_back(parse_xml(answer.body).text_of("ETag"));
      if (tags.back().empty()) throw_answer(answer, request.method, request.key, options_.bucket);
    }
    const bool is_new = complete_upload(to, upload, tags, condition);
    if (!is_new) abort_upload(to, upload);
    return is_new;
  } catch (const Error&) {
    try {
      abort_upload(to, upload);
    } catch (const Error&) {
      // The sweep of old uploads finds it; the error that led here is the one to report.
    }
    throw;
  }
}

}  // namespace tensormill::storage
