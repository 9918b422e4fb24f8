// Reading: what is asked of one module's text, and the answers. Questions and answers are flat
// bytes (daemon/dispatch/fields.h), so that a reader's process can be asked. Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "daemon/dispatch/form_text.h"
#include "daemon/dispatch/variable_home.h"
#include "device/device.h"
#include "injector/forms/placed_variables.h"
#include "injector/ptx/module.h"

namespace slate::daemon {

enum class Topic : std::uint8_t {
  kVariables,  // bytes of the module's variables
  kPlaces,     // text without variables that lie elsewhere
  kForms,      // text of a kernel's forms
  kHome,       // text whose variables are at home
};

struct Question {
  Topic topic = Topic::kVariables;
  std::vector<injector::PlacedVariable> placed = {};  // kPlaces: variables that lie elsewhere
  FormRequest forms = {};                             // kForms: forms that are wanted
  device::AddressRange home = {};                     // kHome: where the variables are to lie
};

/// A module's text without its placed variables.
struct PlacedText {
  struct Contents {
    std::uint64_t bytes = 0;           // size of the variable
    std::vector<std::byte> beginning;  // its first bytes; zeros follow
  };
  std::string text;
  std::vector<Contents> contents;  // contents of each placed variable, in the question's order
};

class Reading {
 public:
  /// `is_over`: whether nobody wants the answers any more; null: they are always wanted.
  explicit Reading(std::string text, std::function<bool()> is_over = nullptr)
      : text_(std::move(text)), is_over_(std::move(is_over)) {}

  /// Answers a packed question. An error of the text is an answer, too.
  std::vector<std::byte> answer(std::span<const std::byte> question);
  /// The answer that is an error.
  static std::vector<std::byte> refusal(const Error& why);

 private:
  using Answer = Result<std::vector<std::byte>>;

  Answer find(std::span<const std::byte> question);
  Answer find_variables();
  Answer find_places(const std::vector<injector::PlacedVariable>& placed);
  Answer find_forms(const FormRequest& request);
  Answer find_home(device::AddressRange home);
  Result<std::unique_ptr<const ptx::Module>> parse(bool bodies) const;
  Result<const ptx::Module*> module();

  const std::string text_;
  const std::function<bool()> is_over_;
  std::unique_ptr<const ptx::Module> module_;  // the whole tree, once something needed it
  // The kernel of the last question of forms: several attempts at the same one follow one another.
  std::string kernel_name_;
  std::unique_ptr<const ptx::Module> kernel_;
};

std::vector<std::byte> pack(const Question& question);

// What is in an answer, of a stranger's text and by a process that it may have taken over. Errors:
// those of the answer, kInvalidValue for bytes that are no answer.
Result<std::uint64_t> unpack_variables(std::span<const std::byte> answer);
Result<PlacedText> unpack_places(std::span<const std::byte> answer, std::size_t placed);
Result<FormText> unpack_forms(std::span<const std::byte> answer, const FormRequest& request);
Result<HomedCode> unpack_home(std::span<const std::byte> answer, device::AddressRange home);

}  // namespace slate::daemon
