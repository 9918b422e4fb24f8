// Symbols: the names that an operand of one function may use, by scope. Inner scopes hide outer
// ones. Labels may be used before they are declared, so they are resolved when their scope closes.
// A name that remains then is one of the module, or unknown. Private to the parser. Thread: one.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "injector/ptx/module.h"

namespace slate::ptx {

/// Hash of a name under a secret of this run, so that the author of the PTX cannot choose
/// collisions.
struct NameHash {
  std::uint64_t secret = 0;
  std::size_t operator()(std::string_view name) const;
  std::size_t operator()(std::uint64_t key) const;
};

template <typename Value>
using NameMap = std::unordered_map<std::string_view, Value, NameHash>;

class Symbols {
 public:
  /// Opens the outermost scope. Requires: `function` outlives the Symbols and is not moved
  /// meanwhile.
  Symbols(Function& function, NameHash hash);

  void open();
  /// Resolves operands that wait for this scope's labels. Requires: open() was called more often
  /// than close().
  void close();
  std::size_t depth() const { return scopes_.size(); }

  void declare(std::string_view name, Reference reference, std::uint32_t index);
  /// Declares prefix0, prefix1, ... prefix(count-1). `shape`: the declaration of one of them.
  /// Returns false if this scope has a range of that name already.
  bool declare_range(Variable shape, std::uint32_t count);
  void declare_label(std::string_view name, std::uint32_t index);

  /// Sets reference and index of a kSymbol operand if its name is a variable or parameter in scope.
  /// Makes the variable at the first use of one of a range. Returns whether it was found.
  bool resolve(Operand& operand);

  /// Stores an operand that may name a label or something of the module. Requires: the operand does
  /// not move again.
  void defer(Operand& operand) { deferred_.push_back(&operand); }
  /// The operands that close() of all scopes has not resolved.
  std::vector<Operand*> take_deferred() { return std::move(deferred_); }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  struct Entry {
    std::string_view name;
    std::uint32_t depth;
    std::uint32_t hidden;  // entry of the same name further out; kNone: none
    std::uint32_t index;   // index of what it refers to; of a range: into ranges_
    Reference reference;
  };
  struct Range {
    Variable shape;
    std::uint32_t count;
  };
  struct Scope {
    std::size_t names;  // sizes when the scope was opened
    std::size_t ranges;
    std::size_t labels;
    std::size_t deferred;
  };
  struct NamedLabel {
    std::string_view name;
    std::uint32_t index;
  };
  /// Entries in order of declaration, and the innermost entry of each name.
  struct Table {
    explicit Table(NameHash hash) : innermost(0, hash) {}
    const Entry* find(std::string_view name) const;
    void push(Entry entry);
    void shrink(std::size_t size);

    std::vector<Entry> entries;
    NameMap<std::uint32_t> innermost;
  };

  std::uint32_t element(std::uint32_t range, std::uint32_t number, std::string_view name);
  void resolve_labels(const Scope& scope);

  Function& function_;
  NameHash hash_;
  Table names_;
  Table prefixes_;
  std::vector<Range> ranges_;
  /// Variable of each range and number.
  std::unordered_map<std::uint64_t, std::uint32_t, NameHash> elements_;
  std::vector<Scope> scopes_;
  std::vector<NamedLabel> labels_;
  std::vector<Operand*> deferred_;
};

}  // namespace slate::ptx
