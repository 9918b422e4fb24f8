#include "injector/fence/loops.h"

#include <algorithm>
#include <map>

#include "injector/analysis/dominators.h"

namespace slate::injector {

Loops::Loops(const ControlFlow& flow, const std::vector<std::uint32_t>& dominators)
    : around_(flow.blocks().size()) {
  const std::vector<bool> may_begin = flow.loop_headers();
  const auto predecessors = flow.predecessors();
  for (std::uint32_t header = 0; header < may_begin.size(); ++header) {
    // In front of block 0 there is no place.
    if (!may_begin[header] || dominators[header] == kNoDominator) continue;
    if (std::uint64_t{count() + 1} * may_begin.size() > kMost) break;
    std::vector<std::uint32_t> tails;
    for (const std::uint32_t tail : predecessors[header]) {
      std::uint32_t above = tail;
      // A tail's way up the tree leads past the header if that dominates it.
      for (std::uint32_t steps = 0; above != header && above != kNoDominator; ++steps) {
        above = steps < may_begin.size() ? dominators[above] : kNoDominator;
      }
      if (above == header) tails.push_back(tail);
    }
    if (tails.empty()) continue;
    befores_.push_back(dominators[header]);
    add(flow, header, predecessors, tails);
    tails_.push_back(std::move(tails));
  }
  std::vector<std::size_t> bytes;
  for (const auto& body : bodies_)
    bytes.push_back(static_cast<std::size_t>(std::ranges::count(body, true)));
  for (auto& loops : around_) {
    std::ranges::sort(loops, {}, [&](std::uint32_t loop) { return bytes[loop]; });
  }
}

void Loops::add(const ControlFlow& flow, std::uint32_t header,
                const std::vector<std::vector<std::uint32_t>>& predecessors,
                const std::vector<std::uint32_t>& tails) {
  std::vector<bool> body(flow.blocks().size(), false);
  body[header] = true;
  std::vector<std::uint32_t> waiting;
  const auto visit = [&](std::uint32_t block) {
    if (!body[block]) waiting.push_back(block);
    body[block] = true;
  };
  for (const std::uint32_t tail : tails) visit(tail);
  while (!waiting.empty()) {
    const std::uint32_t block = waiting.back();
    waiting.pop_back();
    for (const std::uint32_t before : predecessors[block]) visit(before);
  }
  const auto loop = static_cast<std::uint32_t>(headers_.size());
  for (std::uint32_t block = 0; block < body.size(); ++block) {
    if (body[block]) around_[block].push_back(loop);
  }
  headers_.push_back(header);
  auto& entries = entries_.emplace_back();
  for (const std::uint32_t before : predecessors[header]) {
    if (!body[before]) entries.push_back(before);
  }
  bodies_.push_back(std::move(body));
}

}  // namespace slate::injector
