// Unit: a translation unit as a flat list of items (declarations, preprocessor lines, openings and
// closings of scopes), its user's headers spliced in where they are included. Conditional
// compilation is not decided here: what all branches declare is in the list. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "injector/source/files.h"
#include "injector/source/macros.h"

namespace slate::source {

enum class ItemKind : std::uint8_t {
  kDirective,      // any preprocessor line that stands between declarations
  kText,           // `text`: written by us
  kNamespace,      // "namespace x {", "extern "C" {"; what it holds follows, then its kClose
  kClass,          // "struct x {"; members follow as items with this one as parent
  kClose,          // "}" and, for a class, all up to ';'
  kFunction,       // definition or declaration
  kVariable,       //
  kType,           // enum, typedef, using x = ..., forward declaration
  kUsing,          // using namespace x; using x::y;
  kInstantiation,  // template ... ;
  kMacroCall,      // X(a, b) where a declaration could stand
  kAccess,         // "public:"
  kAssert,         // static_assert
};

struct Item {
  ItemKind kind = ItemKind::kVariable;
  const SourceFile* file = nullptr;
  std::uint32_t first = 0;       // of file->tokens
  std::uint32_t last = 0;        // one beyond
  std::uint32_t body = 0;        // of a function: its '{'; otherwise `last`
  std::uint32_t parameters = 0;  // one beyond the '(' of a function's; 0: none
  int parent = -1;               // the scope it is in
  int closing = -1;              // of a scope: its kClose
  bool of_class = false;         // a kClose that ends a kClass
  bool is_member = false;        // "A::f" outside of A; names[0] is then "A"
  bool has_template = false;
  std::vector<std::string_view> names = {};  // what it declares
  std::string text = {};
};

class Unit {
 public:
  /// `directories`: where the user's headers are looked up. `defined`: macros from outside.
  Unit(std::vector<std::string> directories, std::vector<std::string> defined)
      : directories_(std::move(directories)), defined_(std::move(defined)) {}

  /// Takes the main file apart, and the user's headers with it.
  void read(std::string_view text, std::string name, std::string directory);

  const std::vector<Item>& items() const { return items_; }
  const MacroTable& macros() const { return macros_; }
  /// Whether "using namespace std" or a mention of std stands anywhere.
  bool mentions_std() const { return mentions_std_; }
  const std::vector<std::string>& directories() const { return directories_; }

 private:
  friend class Parser;
  struct Header {
    std::unique_ptr<SourceFile> file;
    bool guarded = false;
    bool once = false;  // by #pragma once
    bool taken_surely = false;
    int times = 0;
  };
  void parse(const SourceFile& file, bool guarded);
  /// True for "#ifdef X" and "#if defined(X)" when nothing defines X, and for "#if 0".
  bool never_holds(const Directive& directive) const;
  /// False when the line is to stay in the text as it is.
  bool include(const SourceFile& from, const Include& include);
  int add(Item item);

  std::vector<std::string> directories_;
  std::vector<std::string> defined_;
  std::unique_ptr<SourceFile> main_;
  std::unordered_map<std::string, Header> headers_;
  MacroTable macros_;
  std::vector<Item> items_;
  std::vector<int> scopes_;  // open ones, indices of items
  struct Condition {
    std::vector<int> scopes;  // scopes_ as it was at the #if
    bool never = false;       // its first branch, as far as can be told
  };
  std::vector<Condition> conditional_;  // the open ones
  int guards_ = 0;                      // of the open #if, those that are include guards
  int depth_ = 0;                       // of includes
  bool mentions_std_ = false;
  std::size_t bytes_ = 0;  // of text taken apart so far
};

}  // namespace slate::source
