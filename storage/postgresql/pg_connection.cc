#include "storage/postgresql/pg_connection.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

namespace tensormill::storage {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// pg_current_xact_id() is of 13.
constexpr int kOldestServer = 130'000;
/// Their answers must find room in the socket's buffers, since nobody reads while they are sent.
constexpr size_t kMaxPending = 64;
/// Statements with lists of values are of many lengths.
constexpr size_t kMaxPrepared = 256;
constexpr int kBinary = 1;

/// The catalog's clock, the same for a whole statement, so that an index serves what is compared with it.
constexpr std::string_view kClock = "CAST(FLOOR(EXTRACT(EPOCH FROM statement_timestamp()) * 1000) AS BIGINT)";
constexpr std::string_view kNow = "now_ms()";

/// What an error of the database means here.
ErrorCode code_of(const std::string& state) {
  if (state == "53100") return ErrorCode::kDiskFull;
  if (state.starts_with("XX")) return ErrorCode::kCorrupt;
  if (state.starts_with("22")) return ErrorCode::kInvalidArgument;
  if (state == "23505") return ErrorCode::kConflict;
  if (state == "42501") return ErrorCode::kForbidden;
  return ErrorCode::kUnavailable;
}

/// A mistake in a statement is a bug here, or another program's tables.
bool is_bug(const std::string& state) {
  return state.starts_with("42") && state != "42501" && state != "42P01" && state != "3D000";
}

void ignore_notice(void*, const PGresult*) {}

void add_default(PgParameters& parameters, const std::string& name, const std::string& value) {
  const bool given = std::any_of(parameters.begin(), parameters.end(),
                                 [&](const auto& entry) { return entry.first == name; });
  if (!given) parameters.emplace_back(name, value);
}

PGconn* connect(const Libpq& pq, const PgOptions& options) {
  PgParameters parameters = parse_pg_url(options.url);
  if (!options.password_file.empty())
    parameters.emplace_back("password", read_password(options.password_file));
  parameters.emplace_back("client_encoding", "UTF8");
  add_default(parameters, "application_name", "tensormill");
  add_default(parameters, "connect_timeout", "5");
  // A peer that is gone without a word is noticed.
  add_default(parameters, "keepalives_idle", "5");
  add_default(parameters, "keepalives_interval", "2");
  add_default(parameters, "keepalives_count", "3");
  add_default(parameters, "tcp_user_timeout", "10000");
  std::vector<const char*> names;
  std::vector<const char*> values;
  for (const auto& [name, value] : parameters) {
    names.push_back(name.c_str());
    values.push_back(value.c_str());
  }
  names.push_back(nullptr);
  values.push_back(nullptr);
  return pq.PQconnectdbParams(names.data(), values.data(), 0);
}

std::string trimmed(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

PgError::PgError(std::string state, const std::string& message)
    : Error(code_of(state), "catalog: " + message), state_(std::move(state)) {}

bool PgError::is_conflict() const {
  // Serialization failure, deadlock; a row that another made, or removed, since it was looked for.
  return state_ == "40001" || state_ == "40P01" || state_ == "23505" || state_ == "23503";
}

PgConnection::PgConnection(const PgOptions& options)
    : libpq_(libpq()),
      patience_(options.patience),
      now_ms_(options.now_ms),
      connection_(connect(libpq_, options), libpq_.PQfinish) {
  PGconn* connection = connection_.get();
  if (libpq_.PQstatus(connection) != CONNECTION_OK)
    throw PgError("08001", trimmed(libpq_.PQerrorMessage(connection)));
  // The parameters have been looked at; this looks at what came of them.
  const char* host = libpq_.PQhost(connection);
  if (libpq_.PQsslInUse(connection) == 0 && host != nullptr && !is_local_pg_host(host))
    throw Error(ErrorCode::kUsage, "catalog: the connection to " + std::string(host) + " is not encrypted");
  const int version = libpq_.PQserverVersion(connection);
  if (version < kOldestServer) {
    throw Error(ErrorCode::kNotSupported, "catalog: PostgreSQL " + std::to_string(version / 10'000) +
                                              " is too old, " + std::to_string(kOldestServer / 10'000) +
                                              " is the oldest that serves");
  }
  libpq_.PQsetNoticeReceiver(connection, ignore_notice, nullptr);
  const std::string limit = std::to_string(patience_.count());
  // What is acknowledged must be durable, whatever the database's own default is. A transaction that is left
  // open would hold back every reader of events.
  script("SET statement_timeout = " + limit + "; SET lock_timeout = " + limit +
         "; SET idle_in_transaction_session_timeout = " + limit +
         "; SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') "
         "= 'off'");
}

PgConnection::~PgConnection() = default;

void PgConnection::lose(const std::string& why) {
  broken_ = true;
  pending_.clear();
  throw PgError("08006", "the connection is lost: " + trimmed(why));
}

void PgConnection::check(bool ok) {
  if (!ok) lose(libpq_.PQerrorMessage(connection_.get()));
}

bool PgConnection::is_broken() const {
  return broken_ || libpq_.PQstatus(connection_.get()) != CONNECTION_OK;
}

int64_t PgConnection::now_ms() const {
  if (now_ms_) return now_ms_();
  // Where no row is decided about.
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string PgConnection::translated(std::string_view sql) const {
  std::string text;
  text.reserve(sql.size() + 64);
  int parameter = 0;
  for (size_t i = 0; i < sql.size(); ++i) {
    if (sql[i] == '?') {
      text += '$' + std::to_string(++parameter);
    } else if (sql[i] == 'n' && sql.substr(i).starts_with(kNow)) {
      text += now_ms_ ? "CAST(" + std::to_string(now_ms_()) + " AS BIGINT)" : std::string(kClock);
      i += kNow.size() - 1;
    } else {
      text += sql[i];
    }
  }
  return text;
}

std::unique_ptr<SqlStatement> PgConnection::prepare(std::string_view sql) {
  return std::make_unique<PgStatement>(*this, translated(sql));
}

void PgConnection::send(std::unique_ptr<SqlStatement> statement) {
  enqueue(static_cast<const PgStatement&>(*statement), nullptr);
}

void PgConnection::begin(std::string_view isolation) {
  events_ = 0;
  in_transaction_ = true;
  enqueue(PgStatement(*this, "BEGIN ISOLATION LEVEL " + std::string(isolation)), nullptr);
}

void PgConnection::commit() {
  PgStatement statement(*this, "COMMIT");
  enqueue(statement, &statement);
  flush();
  in_transaction_ = false;
  // A transaction that has failed is rolled back by COMMIT, without an error.
  const std::string_view tag = libpq_.PQcmdStatus(statement.result_.get());
  if (tag != "COMMIT") throw PgError("40000", "the transaction was rolled back");
}

void PgConnection::roll_back() noexcept {
  in_transaction_ = false;
  if (is_broken()) return;
  try {
    PgStatement statement(*this, "ROLLBACK");
    enqueue(statement, nullptr);
    flush();
  } catch (const Error&) {
    // The error that led here is the one to report.
    broken_ = true;
  }
}

std::string PgConnection::prepared_name(const PgStatement& statement) {
  // The test's clock stands in the text.
  if (now_ms_) return "";
  std::string key = statement.sql_;
  for (const PgStatement::Value& value : statement.values_) key += value.type == 0 ? 't' : 'i';
  const auto found = prepared_.find(key);
  if (found != prepared_.end()) return found->second;
  if (prepared_.size() >= kMaxPrepared) return "";
  std::vector<Oid> types;
  for (const PgStatement::Value& value : statement.values_) types.push_back(value.type);
  std::string name = "s" + std::to_string(++names_);
  check(libpq_.PQsendPrepare(connection_.get(), name.c_str(), statement.sql_.c_str(),
                             static_cast<int>(types.size()), types.data()) == 1);
  prepared_[key] = name;
  pending_.push_back({key, nullptr});
  return name;
}

void PgConnection::send_statement(const PgStatement& statement) {
  const size_t count = statement.values_.size();
  std::vector<Oid> types(count);
  std::vector<const char*> values(count);
  std::vector<int> lengths(count);
  const std::vector<int> formats(count, kBinary);
  for (size_t i = 0; i < count; ++i) {
    const PgStatement::Value& value = statement.values_[i];
    types[i] = value.type;
    values[i] = value.null ? nullptr : value.bytes.data();
    lengths[i] = static_cast<int>(value.bytes.size());
  }
  const std::string name = prepared_name(statement);
  PGconn* connection = connection_.get();
  const int parameters = static_cast<int>(count);
  check((name.empty() ? libpq_.PQsendQueryParams(connection, statement.sql_.c_str(), parameters, types.data(),
                                                 values.data(), lengths.data(), formats.data(), kBinary)
                      : libpq_.PQsendQueryPrepared(connection, name.c_str(), parameters, values.data(),
                                                   lengths.data(), formats.data(), kBinary)) == 1);
}

void PgConnection::enqueue(const PgStatement& statement, PgStatement* reads) {
  if (is_broken()) lose("it was closed");
  if (pending_.size() >= kMaxPending) flush();
  if (pending_.empty()) check(libpq_.PQenterPipelineMode(connection_.get()) == 1);
  send_statement(statement);
  pending_.push_back({"", reads});
}

void PgConnection::wait_for_answer() {
  while (libpq_.PQisBusy(connection_.get()) != 0) {
    const auto left = std::chrono::ceil<milliseconds>(deadline_ - steady_clock::now());
    pollfd descriptor{libpq_.PQsocket(connection_.get()), POLLIN, 0};
    const int ready = ::poll(&descriptor, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (ready == 0) lose("no answer within " + std::to_string(patience_.count()) + " ms");
    if (ready < 0 && errno == EINTR) continue;
    check(ready > 0 && libpq_.PQconsumeInput(connection_.get()) == 1);
  }
}

std::unique_ptr<PGresult, decltype(&PQclear)> PgConnection::next_result() {
  wait_for_answer();
  return {libpq_.PQgetResult(connection_.get()), libpq_.PQclear};
}

void PgConnection::take(const Pending& pending, std::unique_ptr<PgError>& error) {
  auto result = next_result();
  if (result == nullptr) lose("an answer is missing");
  const ExecStatusType status = libpq_.PQresultStatus(result.get());
  const bool done = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
  if (!done && !pending.prepared.empty()) prepared_.erase(pending.prepared);
  if (!done && status != PGRES_PIPELINE_ABORTED && !error) {
    const char* state = libpq_.PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
    if (state == nullptr) lose(libpq_.PQerrorMessage(connection_.get()));
    const char* primary = libpq_.PQresultErrorField(result.get(), PG_DIAG_MESSAGE_PRIMARY);
    error = std::make_unique<PgError>(state, trimmed(primary != nullptr ? primary : state));
  }
  if (done && pending.reads != nullptr) {
    const std::string_view count = libpq_.PQcmdTuples(result.get());
    changes_ = 0;
    std::from_chars(count.data(), count.data() + count.size(), changes_);
    pending.reads->result_ = std::move(result);
  }
  while (next_result() != nullptr) continue;
}

void PgConnection::flush() {
  if (pending_.empty()) return;
  deadline_ = steady_clock::now() + patience_;
  check(libpq_.PQpipelineSync(connection_.get()) == 1);
  std::unique_ptr<PgError> error;
  for (const Pending& pending : std::exchange(pending_, {})) take(pending, error);
  const auto sync = next_result();
  if (sync == nullptr || libpq_.PQresultStatus(sync.get()) != PGRES_PIPELINE_SYNC)
    lose(libpq_.PQerrorMessage(connection_.get()));
  check(libpq_.PQexitPipelineMode(connection_.get()) == 1);
  if (!error) return;
  if (error->is_lost()) broken_ = true;
  if (is_bug(error->state())) throw InternalError("PostgreSQL " + error->state() + ": " + error->message());
  throw PgError(*error);
}

void PgConnection::script(const std::string& sql) {
  flush();
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(libpq_.PQexec(connection_.get(), sql.c_str()),
                                                             libpq_.PQclear);
  const ExecStatusType status = libpq_.PQresultStatus(result.get());
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return;
  const char* state = libpq_.PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
  if (state == nullptr) lose(libpq_.PQerrorMessage(connection_.get()));
  throw PgError(state, trimmed(libpq_.PQresultErrorMessage(result.get())));
}

int PgConnection::socket() const { return libpq_.PQsocket(connection_.get()); }

bool PgConnection::take_notices() {
  check(libpq_.PQconsumeInput(connection_.get()) == 1);
  bool found = false;
  const int own = libpq_.PQbackendPID(connection_.get());
  while (true) {
    const std::unique_ptr<PGnotify, decltype(&PQfreemem)> notice(libpq_.PQnotifies(connection_.get()),
                                                                 libpq_.PQfreemem);
    if (!notice) return found;
    found = found || notice->be_pid != own;
  }
}

}  // namespace tensormill::storage
