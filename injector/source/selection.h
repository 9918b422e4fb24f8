// Selection: which items of a unit the device needs. From the roots (kernels, device variables) it
// follows names to their declarations: annotated and constexpr functions, types, constants. Items
// for the host alone are never followed, since nvcc would not let a kernel use them. A name that
// the compiler misses can be asked for all the same. Thread: one.
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
  /// Whether the item is a kernel or a device variable, which the caller wants.
  bool is_essential(int item) const;
  bool uses(std::string_view name) const { return used_.contains(name); }
  /// Whether device code uses more of namespace std than our prelude has.
  bool needs_whole_std() const { return needs_whole_std_ || wants_whole_std_; }
  bool banned(int item) const { return banned_[item]; }

  /// Forbids an item, with the reason for messages.
  void ban(int item, std::string why) {
    banned_[item] = true;
    why_banned_[item] = std::move(why);
  }
  const std::string& why_banned(int item) const { return why_banned_.at(item); }
  /// Asks for a name. Returns whether that adds something: an item that is not kept declares it.
  bool want(std::string_view name);
  /// Asks for all of std. Returns whether that adds something: headers of the C++ library are among
  /// the user's.
  bool want_whole_std();
  /// Uses these names as if device code contained them; for the arguments of template instances.
  void use_also(std::string_view text);

  /// Names of the __global__ templates.
  const std::unordered_set<std::string_view>& kernel_templates() const { return templates_; }
  /// All items that declare a name, in order; null if there are none.
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
