#include "compiler/frontend/onnx/model/sort_nodes.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tensormill::frontend::onnx {

namespace {

void add_reads(const NodeProto& node, std::set<std::string>& reads);

/// What a subgraph reads of the graphs around it.
void add_outer_reads(const GraphProto& graph, std::set<std::string>& reads) {
  std::set<std::string> inner;
  for (const NodeProto& node : graph.nodes) add_reads(node, inner);
  for (const ValueInfoProto& output : graph.outputs) inner.insert(output.name);
  for (const ValueInfoProto& input : graph.inputs) inner.erase(input.name);
  for (const TensorProto& tensor : graph.initializers) inner.erase(tensor.name);
  for (const NodeProto& node : graph.nodes) {
    for (const std::string& output : node.outputs) inner.erase(output);
  }
  reads.insert(inner.begin(), inner.end());
}

void add_reads(const NodeProto& node, std::set<std::string>& reads) {
  reads.insert(node.inputs.begin(), node.inputs.end());
  for (const AttributeProto& attribute : node.attributes) {
    for (const auto& graph : attribute.graphs) add_outer_reads(*graph, reads);
  }
}

/// The places of the nodes in an order in which each stands behind those that it reads from.
std::vector<size_t> sorted_order(const std::vector<NodeProto>& nodes) {
  std::map<std::string, size_t> makers;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& output : nodes[i].outputs) {
      if (!output.empty()) makers.emplace(output, i);
    }
  }
  std::vector<std::vector<size_t>> readers(nodes.size());
  std::vector<size_t> waits_for(nodes.size(), 0);
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::set<std::string> reads;
    add_reads(nodes[i], reads);
    for (const std::string& name : reads) {
      const auto maker = makers.find(name);
      if (maker == makers.end()) continue;
      readers[maker->second].push_back(i);
      ++waits_for[i];
    }
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (waits_for[i] == 0) ready.push(i);
  }
  std::vector<size_t> order;
  while (!ready.empty()) {
    const size_t next = ready.top();
    ready.pop();
    order.push_back(next);
    for (const size_t reader : readers[next]) {
      if (--waits_for[reader] == 0) ready.push(reader);
    }
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (waits_for[i] != 0) order.push_back(i);
  }
  return order;
}

}  // namespace

void sort_nodes(GraphProto& graph) {
  for (NodeProto& node : graph.nodes) {
    for (AttributeProto& attribute : node.attributes) {
      for (auto& inner : attribute.graphs) {
        GraphProto sorted = *inner;
        sort_nodes(sorted);
        inner = std::make_shared<const GraphProto>(std::move(sorted));
      }
    }
  }
  const std::vector<size_t> order = sorted_order(graph.nodes);
  if (std::is_sorted(order.begin(), order.end())) return;
  std::vector<NodeProto> nodes;
  nodes.reserve(order.size());
  for (const size_t place : order) nodes.push_back(std::move(graph.nodes[place]));
  graph.nodes = std::move(nodes);
}

}  // namespace tensormill::frontend::onnx
