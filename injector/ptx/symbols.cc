#include "injector/ptx/symbols.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace slate::ptx {
namespace {

std::uint64_t mix(std::uint64_t value) {
  value ^= value >> 32;
  value *= 0x9e3779b97f4a7c15u;
  value ^= value >> 29;
  value *= 0xbf58476d1ce4e5b9u;
  return value ^ (value >> 32);
}

/// "%r17" is prefix "%r" and 17. False without digits, or with a zero in front as in "%r07".
bool split_number(std::string_view name, std::string_view& prefix, std::uint32_t& number) {
  std::size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  if (digits == name.size() || digits == 0) return false;
  // A range may be called "%r1<5>": of all splits only the one after the last non-digit is tried,
  // which is the one that compilers write.
  if (name[digits] == '0' && digits + 1 != name.size()) return false;
  prefix = name.substr(0, digits);
  return std::from_chars(name.data() + digits, name.data() + name.size(), number).ec == std::errc{};
}

}  // namespace

std::size_t NameHash::operator()(std::string_view name) const {
  std::uint64_t state = secret ^ name.size();
  while (name.size() >= 8) {
    std::uint64_t word;
    std::memcpy(&word, name.data(), 8);
    state = mix(state ^ word);
    name.remove_prefix(8);
  }
  std::uint64_t rest = 0;
  if (!name.empty()) std::memcpy(&rest, name.data(), name.size());
  return mix(state ^ rest);
}

std::size_t NameHash::operator()(std::uint64_t key) const {
  return mix(secret ^ key);
}

const Symbols::Entry* Symbols::Table::find(std::string_view name) const {
  const auto found = innermost.find(name);
  return found == innermost.end() || found->second == kNone ? nullptr : &entries[found->second];
}

void Symbols::Table::push(Entry entry) {
  const auto position = static_cast<std::uint32_t>(entries.size());
  const auto [found, inserted] = innermost.try_emplace(entry.name, position);
  entry.hidden = inserted ? kNone : found->second;
  found->second = position;
  entries.push_back(entry);
}

void Symbols::Table::shrink(std::size_t size) {
  while (entries.size() > size) {
    innermost.find(entries.back().name)->second = entries.back().hidden;
    entries.pop_back();
  }
}

Symbols::Symbols(Function& function, NameHash hash)
    : function_(function), hash_(hash), names_(hash), prefixes_(hash), elements_(0, hash) {
  open();
}

void Symbols::open() {
  scopes_.push_back(
      {names_.entries.size(), prefixes_.entries.size(), labels_.size(), deferred_.size()});
}

void Symbols::close() {
  const Scope scope = scopes_.back();
  scopes_.pop_back();
  resolve_labels(scope);
  names_.shrink(scope.names);
  prefixes_.shrink(scope.ranges);
}

void Symbols::resolve_labels(const Scope& scope) {
  if (labels_.size() == scope.labels) return;
  NameMap<std::uint32_t> by_name(labels_.size() - scope.labels, hash_);
  for (std::size_t i = scope.labels; i < labels_.size(); ++i) {
    by_name.try_emplace(labels_[i].name, labels_[i].index);
  }
  labels_.resize(scope.labels);
  const auto unresolved = [&](Operand* operand) {
    const auto found = by_name.find(operand->text);
    if (found == by_name.end()) return true;
    operand->reference = Reference::kLabel;
    operand->index = found->second;
    return false;
  };
  const auto first = deferred_.begin() + static_cast<std::ptrdiff_t>(scope.deferred);
  deferred_.erase(std::stable_partition(first, deferred_.end(), unresolved), deferred_.end());
}

void Symbols::declare(std::string_view name, Reference reference, std::uint32_t index) {
  names_.push({name, static_cast<std::uint32_t>(depth()), kNone, index, reference});
}

bool Symbols::declare_range(Variable shape, std::uint32_t count) {
  const std::string_view prefix = shape.name;
  // More than one a scope would make every look-up walk them all.
  const Entry* present = prefixes_.find(prefix);
  if (present != nullptr && present->depth == depth()) return false;
  prefixes_.push({prefix, static_cast<std::uint32_t>(depth()), kNone,
                  static_cast<std::uint32_t>(ranges_.size()), Reference::kLocal});
  ranges_.push_back({std::move(shape), count});
  return true;
}

void Symbols::declare_label(std::string_view name, std::uint32_t index) {
  labels_.push_back({name, index});
}

bool Symbols::resolve(Operand& operand) {
  const Entry* exact = names_.find(operand.text);
  std::string_view prefix;
  std::uint32_t number = 0;
  const Entry* range = nullptr;
  if (split_number(operand.text, prefix, number)) {
    range = prefixes_.find(prefix);
    while (range != nullptr && number >= ranges_[range->index].count) {
      range = range->hidden == kNone ? nullptr : &prefixes_.entries[range->hidden];
    }
  }
  if (range != nullptr && (exact == nullptr || exact->depth < range->depth)) {
    operand.reference = Reference::kLocal;
    operand.index = element(range->index, number, operand.text);
    return true;
  }
  if (exact == nullptr) return false;
  operand.reference = exact->reference;
  operand.index = exact->index;
  return true;
}

std::uint32_t Symbols::element(std::uint32_t range, std::uint32_t number, std::string_view name) {
  const std::uint64_t key = std::uint64_t{range} << 32 | number;
  const auto [found, inserted] =
      elements_.try_emplace(key, static_cast<std::uint32_t>(function_.variables.size()));
  if (inserted) {
    function_.variables.push_back(ranges_[range].shape);
    function_.variables.back().name = name;
  }
  return found->second;
}

}  // namespace slate::ptx
