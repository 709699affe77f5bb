/// Finds the route of a request. Patterns are segments, of which "{name}" matches any one that is not empty;
/// a literal wins over a parameter. Thread-safety: match() from many threads once all routes are added.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tensormill::http {

class Router {
public:
  struct Match {
    int route = -1;                    ///< what add() was given; -1 when there is none
    std::vector<std::string> allowed;  ///< methods of the path, sorted; empty when no route has that path
    std::map<std::string, std::string, std::less<>> parameters;
  };

  /// `pattern` is "/v1/models/{model}/graph". GET routes answer HEAD as well.
  void add(std::string_view method, std::string_view pattern, int route);
  Match match(std::string_view method, const std::vector<std::string>& segments) const;

private:
  struct Entry {
    std::string method;
    std::vector<std::string> segments;
    int route;
  };
  std::vector<Entry> entries_;
};

/// The segments of a pattern or plain path.
std::vector<std::string> split_path(std::string_view path);

}  // namespace tensormill::http
