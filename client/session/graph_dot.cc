#include "client/session/graph_dot.h"

#include <array>
#include <fstream>
#include <map>
#include <sstream>

#include "client/session/code.h"

namespace slate::client {
namespace {

using Sizes = std::array<std::uint32_t, 3>;

std::string in_quotes(const std::string& text) {
  std::string all = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') all += '\\';
    all += c;
  }
  return all + '"';
}

void put(std::ostream& out, const char* name, const Sizes& sizes) {
  out << "\n" << name << " " << sizes[0] << " x " << sizes[1] << " x " << sizes[2];
}

void put(std::ostream& out, const char* name, const BoxSide& side) {
  out << "\n" << name << " ";
  if (side.array != 0) {
    out << "array " << side.array;
  } else {
    out << side.memory;
  }
  out << " at " << side.x << ", " << side.y << ", " << side.z;
}

/// The first line says what kind of node it is.
class Label {
 public:
  explicit Label(bool details) : details_(details) {}
  std::string text() const { return out_.str(); }

  void operator()(const EmptyNode&) { out_ << "empty"; }
  void operator()(const KernelNode& node) {
    out_ << "kernel " << node.kernel->name;
    if (!details_) return;
    put(out_, "grid", node.config.grid);
    put(out_, "block", node.config.block);
    out_ << "\ndynamic shared memory " << node.config.dynamic_shared_bytes << " bytes";
    if (node.config.cluster[0] != 0) put(out_, "cluster", node.config.cluster);
    if (node.config.cooperative) out_ << "\ncooperative";
  }
  void operator()(const CopyNode& node) {
    out_ << "copy";
    if (!details_) return;
    put(out_, "to", node.copy.to);
    put(out_, "from", node.copy.from);
    const BoxExtent& extent = node.copy.extent;
    out_ << "\n" << extent.width << " x " << extent.height << " x " << extent.depth;
  }
  void operator()(const FillNode& node) {
    out_ << "fill";
    if (!details_) return;
    out_ << "\nto " << node.to << ", rows " << node.pitch << " bytes apart\nvalue " << node.value
         << " of " << node.element << " bytes\n"
         << node.width << " x " << node.height;
  }
  void operator()(const HostNode& node) {
    out_ << "host function";
    if (details_)
      out_ << "\n" << reinterpret_cast<const void*>(node.function) << " with " << node.data;
  }
  void operator()(const RecordNode& node) { event("record of an event", node.event); }
  void operator()(const WaitNode& node) { event("wait for an event", node.event); }
  void operator()(const ChildNode&) { out_ << "graph"; }
  void operator()(const AllocateNode&) { out_ << "allocation"; }
  void operator()(const FreeNode& node) {
    out_ << "free";
    if (details_) out_ << "\n" << pointer_to(node.address);
  }

 private:
  void event(const char* what, std::uint64_t id) {
    out_ << what;
    if (details_) out_ << "\n" << id;
  }

  const bool details_;
  std::ostringstream out_;
};

/// Node `i` of a graph is `name`_i, and that of the graph inside of it `name`_i_j.
void put(std::ostream& out, const Graph& graph, const std::string& name, bool details) {
  std::map<const Node*, std::string> names;
  for (const auto& node : graph.nodes()) {
    names[node.get()] = name + "_" + std::to_string(names.size());
    const std::string& its = names[node.get()];
    Label label(details);
    std::visit(label, node->work);
    out << "  " << its << " [shape=box, label=" << in_quotes(label.text()) << "];\n";
    if (const auto* const child = std::get_if<ChildNode>(&node->work)) {
      out << "  subgraph cluster_" << its << " {\n  label=" << in_quotes(its) << ";\n";
      put(out, *child->graph, its, details);
      out << "  }\n";
    }
  }
  for (const auto& node : graph.nodes()) {
    for (const Node* const before : node->before)
      out << "  " << names[before] << " -> " << names[node.get()] << ";\n";
  }
}

}  // namespace

Allowed<void> write_dot(GraphHandle graph, const std::string& path, bool details) {
  std::ostringstream text;
  {
    const MutexLock lock(Graphs::get().mutex);
    const auto its = Graphs::get().find(graph);
    if (!its) return refuse(Refusal::kInvalidValue);
    text << "digraph work {\n";
    put(text, *its, "node", details);
    text << "}\n";
  }
  std::ofstream file(path);
  file << text.str();
  file.close();
  if (!file) return std::unexpected<Refused>(Error{ErrorCode::kIo, path + " cannot be written"});
  return {};
}

}  // namespace slate::client
