// Selection: which items of a unit the device needs. From the roots (kernels, device variables) it
// follows names to whatever declares them: annotated and constexpr functions, types, constants.
// What is the host's alone is never followed, since nvcc would not let a kernel use it either; a
// name that the compiler misses can be asked for all the same. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "injector/source/unit.h"

namespace slate::source {

class Selection {
 public:
  explicit Selection(const Unit& unit);

  /// Decides anew, with the names asked for and the items forbidden so far.
  void decide();

  bool kept(int item) const { return kept_[item]; }
  std::uint32_t marks(int item) const { return marks_[item]; }
  /// A kernel or a device variable: what the caller wants.
  bool is_essential(int item) const;
  bool uses(std::string_view name) const { return used_.contains(name); }
  /// Whether the device code takes more of namespace std than our prelude has.
  bool needs_whole_std() const { return needs_whole_std_ || wants_whole_std_; }
  bool banned(int item) const { return banned_[item]; }

  void ban(int item, std::string why) {
    banned_[item] = true;
    why_banned_[item] = std::move(why);
  }
  const std::string& why_banned(int item) const { return why_banned_.at(item); }
  /// True when that adds something: an item that is not kept declares it.
  bool want(std::string_view name);
  /// True when that adds something: headers of the C++ library are among the user's.
  bool want_whole_std();
  /// As if the device code said these names; for the arguments of template instances.
  void use_also(std::string_view text);

  /// The __global__ templates by name.
  const std::unordered_set<std::string_view>& kernel_templates() const { return templates_; }
  /// All items that declare a name, in order.
  const std::vector<int>* declaring(std::string_view name) const;

 private:
  std::uint32_t find_marks(const Item& item) const;
  bool find_root(int index) const;
  bool may_follow(int index) const;
  bool is_instantiation(int index) const;
  bool is_host_alone(int index) const;
  bool in_class(int index) const;
  void keep(int index);
  void keep_class(int index);
  void use_names_of(const Item& item);
  void use(std::string_view name);
  void use_pasted(const Macro& macro);
  bool keeps_whole_assert(const Item& item) const;

  const Unit& unit_;
  std::vector<std::uint32_t> marks_;
  std::vector<char> roots_, kept_, banned_;
  std::unordered_map<std::string_view, std::vector<int>> declaring_;
  std::unordered_map<std::string, bool> device_members_;  // "A::f": marked for the device
  std::unordered_set<std::string_view> templates_, namespaces_, member_names_;
  std::unordered_set<std::string_view> used_;
  std::unordered_set<std::string> wanted_, also_;
  std::unordered_map<int, std::string> why_banned_;
  std::vector<std::string_view> pending_;
  bool needs_whole_std_ = false, wants_whole_std_ = false;
};

}  // namespace slate::source
