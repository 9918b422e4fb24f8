// Unit: a translation unit as a flat list of items (declarations, preprocessor lines, beginnings
// and ends of scopes), with its user's headers in place of their #include lines. Conditions are not
// evaluated: the declarations of all branches are in the list. Thread: one.
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
  kText,           // `text`, written by us
  kNamespace,      // "namespace x {", "extern "C" {"; its contents follow, then its kClose
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

/// One item of the list.
struct Item {
  ItemKind kind = ItemKind::kVariable;
  const SourceFile* file = nullptr;
  std::uint32_t first = 0;       // first of file->tokens
  std::uint32_t last = 0;        // index behind the last token
  std::uint32_t body = 0;        // a function: its '{'; else `last`
  std::uint32_t parameters = 0;  // a function: index behind its '('; 0: none
  int parent = -1;               // scope that it is in
  int closing = -1;              // scope: its kClose
  bool of_class = false;         // kClose: whether it ends a kClass
  bool is_member = false;        // "A::f" outside of A; then names[0] is "A"
  bool has_template = false;
  std::vector<std::string_view> names = {};  // names that it declares
  std::string text = {};
};

class Unit {
 public:
  /// `directories`: places to search for the user's headers. `defined`: macros from outside.
  Unit(std::vector<std::string> directories, std::vector<std::string> defined)
      : directories_(std::move(directories)), defined_(std::move(defined)) {}

  /// Splits the main file, and the user's headers with it, into items.
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
    bool once = false;  // whether it has #pragma once
    bool taken_surely = false;
    int times = 0;
  };
  void parse(const SourceFile& file, bool guarded);
  /// Whether it is "#ifdef X" or "#if defined(X)" and nothing defines X, or "#if 0".
  bool never_holds(const Directive& directive) const;
  /// Reads an included header. Returns false when the line is to stay in the text as it is.
  bool include(const SourceFile& from, const Include& include);
  int add(Item item);

  std::vector<std::string> directories_;
  std::vector<std::string> defined_;
  std::unique_ptr<SourceFile> main_;
  std::unordered_map<std::string, Header> headers_;
  MacroTable macros_;
  std::vector<Item> items_;
  std::vector<int> scopes_;  // indices of the open scopes' items
  /// An #if that is open.
  struct Condition {
    std::vector<int> scopes;  // `scopes_` at the #if
    bool never = false;       // whether its first branch never holds, as far as can be known
  };
  std::vector<Condition> conditional_;
  int guards_ = 0;  // open #ifs that are include guards
  int depth_ = 0;   // depth of includes
  bool mentions_std_ = false;
  std::size_t bytes_ = 0;  // bytes of text read so far
};

}  // namespace slate::source
