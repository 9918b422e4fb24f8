// Register allocation: liveness over the control flow, then a linear scan over the text. Kernels
// name thousands of virtual registers; a warp's frame must stay in the cache.
#include <algorithm>
#include <bit>
#include <queue>

#include "device/sim/decode.h"

namespace slate::sim {
namespace {

constexpr std::uint32_t kNever = 0xffffffffu;
constexpr std::size_t kMaxLivenessWords = 8u << 20;  // of one set; 64 MiB
using Bits = std::vector<std::uint64_t>;

bool test(const Bits& bits, std::size_t i) {
  return bits[i / 64] >> (i % 64) & 1;
}
void set(Bits& bits, std::size_t i) {
  bits[i / 64] |= std::uint64_t{1} << (i % 64);
}

struct Interval {
  std::uint32_t first = kNever;
  std::uint32_t last = 0;
  void include(std::uint32_t position) {
    first = std::min(first, position);
    last = std::max(last, position);
  }
};

class Allocator {
 public:
  Allocator(Code& code, FunctionCode& out, const std::vector<std::uint8_t>& widths)
      : code_(code), out_(out), widths_(widths), blocks_(find_blocks(code, out)) {}

  Allocation run(std::uint32_t reserved) {
    find_shared_between_blocks();
    if (blocks_.size() * words_ <= kMaxLivenessWords) {
      solve_liveness();
    } else {  // out of proportion: what several blocks use keeps its place throughout
      live_in_.assign(blocks_.size(), {});
      live_out_ = live_in_;
      keep_throughout_ = true;
    }
    build_intervals();
    const Allocation result = scan(reserved);
    rewrite();
    return result;
  }

 private:
  template <typename Visit>
  void each_use(const Op& op, Visit visit) const {
    for (unsigned i = 0; i < 6; ++i) {
      if (op.uses >> i & 1) visit_ref(op.r[i], visit);
    }
    visit_ref(op.guard, visit);
    if (op.kind == Kind::kCall) {
      const CallSite& site = code_.calls[op.target];
      visit_ref(site.address, visit);
      for (const Argument& argument : site.arguments) visit_ref(argument.ref, visit);
    } else if (op.kind == Kind::kReturn) {
      for (const Argument& argument : out_.returns) visit_ref(argument.ref, visit);
    } else if (op.kind == Kind::kMatrix) {
      const MatrixSite& site = code_.matrices[op.target];
      for (const auto* const read : {&site.a, &site.b, &site.c}) {
        for (const Ref ref : *read) visit_ref(ref, visit);
      }
    }
  }
  template <typename Visit>
  void each_definition(const Op& op, Visit visit) const {
    for (unsigned i = 0; i < 6; ++i) {
      if (op.defs >> i & 1) visit_ref(op.r[i], visit);
    }
    if (op.kind == Kind::kCall) {
      for (const Argument& argument : code_.calls[op.target].returns)
        visit_ref(argument.ref, visit);
    } else if (op.kind == Kind::kMatrix) {
      for (const Ref ref : code_.matrices[op.target].written) visit_ref(ref, visit);
    }
  }
  template <typename Visit>
  static void visit_ref(Ref ref, Visit visit) {
    if (ref != kNoRef && (ref & kRefBaseMask) == kInFrame) visit(ref / 64);
  }

  /// Most registers live inside one block; only the others take part in the data flow.
  void find_shared_between_blocks() {
    dense_.assign(widths_.size(), kNever);
    std::vector<std::uint32_t> defined(widths_.size(), kNever);
    std::uint32_t count = 0;
    for (std::uint32_t b = 0; b < blocks_.size(); ++b) {
      for (std::uint32_t pc = blocks_[b].first; pc < blocks_[b].end; ++pc) {
        const Op& op = code_.ops[pc];
        each_use(op, [&](std::uint32_t reg) {
          if (defined[reg] != b && dense_[reg] == kNever) dense_[reg] = count++;
        });
        if (op.guard != kNoRef) continue;  // a guarded definition leaves other lanes as they were
        each_definition(op, [&](std::uint32_t reg) { defined[reg] = b; });
      }
    }
    words_ = (count + 63) / 64;
  }

  void solve_liveness() {
    live_in_.assign(blocks_.size(), Bits(words_));
    live_out_.assign(blocks_.size(), Bits(words_));
    std::vector<Bits> kills(blocks_.size(), Bits(words_));
    std::vector<std::vector<std::uint32_t>> predecessors(blocks_.size());
    for (std::uint32_t b = 0; b < blocks_.size(); ++b) {
      for (const std::uint32_t to : blocks_[b].successors) predecessors[to].push_back(b);
      for (std::uint32_t pc = blocks_[b].first; pc < blocks_[b].end; ++pc) {
        const Op& op = code_.ops[pc];
        each_use(op, [&](std::uint32_t reg) {
          const std::uint32_t i = dense_[reg];
          if (i != kNever && !test(kills[b], i)) set(live_in_[b], i);
        });
        if (op.guard != kNoRef) continue;
        each_definition(op, [&](std::uint32_t reg) {
          if (dense_[reg] != kNever) set(kills[b], dense_[reg]);
        });
      }
    }
    std::vector<std::uint32_t> pending;
    std::vector<bool> queued(blocks_.size(), true);
    for (std::uint32_t b = 0; b < blocks_.size(); ++b) pending.push_back(b);
    while (!pending.empty()) {
      const std::uint32_t b = pending.back();
      pending.pop_back();
      queued[b] = false;
      bool changed = false;
      for (std::size_t w = 0; w < words_; ++w) {
        std::uint64_t out = 0;
        for (const std::uint32_t to : blocks_[b].successors) out |= live_in_[to][w];
        live_out_[b][w] = out;
        const std::uint64_t in = live_in_[b][w] | (out & ~kills[b][w]);
        changed |= in != live_in_[b][w];
        live_in_[b][w] = in;
      }
      if (!changed) continue;
      for (const std::uint32_t from : predecessors[b]) {
        if (!queued[from]) pending.push_back(from);
        queued[from] = true;
      }
    }
  }

  void build_intervals() {
    intervals_.assign(widths_.size(), {});
    std::vector<std::uint32_t> sparse;
    for (std::uint32_t reg = 0; reg < widths_.size(); ++reg) {
      if (dense_[reg] == kNever) continue;
      if (sparse.size() <= dense_[reg]) sparse.resize(dense_[reg] + 1);
      sparse[dense_[reg]] = reg;
    }
    const auto include_all = [&](const Bits& bits, std::uint32_t position) {
      for (std::size_t w = 0; w < bits.size(); ++w) {
        for (std::uint64_t rest = bits[w]; rest != 0; rest &= rest - 1) {
          intervals_[sparse[w * 64 + std::countr_zero(rest)]].include(position);
        }
      }
    };
    for (std::uint32_t b = 0; b < blocks_.size(); ++b) {
      include_all(live_in_[b], blocks_[b].first);
      include_all(live_out_[b], blocks_[b].end - 1);
      for (std::uint32_t pc = blocks_[b].first; pc < blocks_[b].end; ++pc) {
        const auto include = [&](std::uint32_t reg) { intervals_[reg].include(pc); };
        each_use(code_.ops[pc], include);
        each_definition(code_.ops[pc], include);
      }
    }
    for (std::uint32_t reg = 0; reg < widths_.size() && keep_throughout_; ++reg) {
      if (dense_[reg] == kNever) continue;
      intervals_[reg].include(out_.first);
      intervals_[reg].include(out_.end - 1);
    }
    const auto include_formal = [&](std::uint32_t reg) { intervals_[reg].include(out_.first); };
    for (const Argument& formal : out_.parameters) visit_ref(formal.ref, include_formal);
    for (const Argument& formal : out_.returns) visit_ref(formal.ref, include_formal);
  }

  Allocation scan(std::uint32_t reserved) {
    std::vector<std::uint32_t> by_start;
    for (std::uint32_t reg = 0; reg < widths_.size(); ++reg) {
      if (intervals_[reg].first != kNever) by_start.push_back(reg);
    }
    std::ranges::stable_sort(by_start, {},
                             [&](std::uint32_t reg) { return intervals_[reg].first; });
    using Active = std::pair<std::uint32_t, std::uint32_t>;  // last position, register
    std::priority_queue<Active, std::vector<Active>, std::greater<>> active;
    std::vector<std::uint32_t> free_places[17];
    places_.assign(widths_.size(), 0);
    std::uint64_t end = reserved;
    std::uint32_t alive = 0;
    Allocation result;
    for (const std::uint32_t reg : by_start) {
      while (!active.empty() && active.top().first < intervals_[reg].first) {
        const std::uint32_t done = active.top().second;
        free_places[widths_[done]].push_back(places_[done]);
        alive -= words(done);
        active.pop();
      }
      auto& free_list = free_places[widths_[reg]];
      if (free_list.empty()) {
        places_[reg] = static_cast<std::uint32_t>(end);
        end += std::max<std::uint32_t>(widths_[reg] * kWarpSize, kRegisterAlign);
      } else {
        places_[reg] = free_list.back();
        free_list.pop_back();
      }
      active.emplace(intervals_[reg].last, reg);
      alive += words(reg);
      result.peak_registers = std::max(result.peak_registers, alive);
    }
    end = std::max<std::uint64_t>(end, kRegisterAlign);
    result.frame_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(end, kNever));
    return result;
  }

  std::uint32_t words(std::uint32_t reg) const { return (widths_[reg] + 3u) / 4; }

  void rewrite() {
    const auto place = [&](Ref& ref) {
      if (ref != kNoRef && (ref & kRefBaseMask) == kInFrame) ref = places_[ref / 64];
    };
    for (std::uint32_t pc = out_.first; pc < out_.end; ++pc) {
      Op& op = code_.ops[pc];
      for (unsigned i = 0; i < 6; ++i) {
        if ((op.uses | op.defs) >> i & 1) place(op.r[i]);
      }
      place(op.guard);
      if (op.kind == Kind::kMatrix) {
        MatrixSite& site = code_.matrices[op.target];
        for (auto* const group : {&site.written, &site.a, &site.b, &site.c}) {
          for (Ref& ref : *group) place(ref);
        }
      }
      if (op.kind != Kind::kCall) continue;
      CallSite& site = code_.calls[op.target];
      place(site.address);
      for (Argument& argument : site.arguments) place(argument.ref);
      for (Argument& argument : site.returns) place(argument.ref);
    }
    for (Argument& formal : out_.parameters) place(formal.ref);
    for (Argument& formal : out_.returns) place(formal.ref);
  }

  Code& code_;
  FunctionCode& out_;
  const std::vector<std::uint8_t>& widths_;
  std::vector<BasicBlock> blocks_;
  std::vector<std::uint32_t> dense_;  // register -> number among those shared between blocks
  std::size_t words_ = 0;
  bool keep_throughout_ = false;
  std::vector<Bits> live_in_, live_out_;
  std::vector<Interval> intervals_;
  std::vector<std::uint32_t> places_;
};

}  // namespace

Allocation allocate_registers(Code& code, FunctionCode& out,
                              const std::vector<std::uint8_t>& widths, std::uint32_t reserved) {
  return Allocator(code, out, widths).run(reserved);
}

}  // namespace slate::sim
