#include "daemon/reader/reading.h"

#include <algorithm>
#include <utility>

#include "daemon/dispatch/fields.h"
#include "daemon/dispatch/module_variables.h"

namespace slate::injector {

template <typename Archive>
void fields(Archive& archive, PlacedVariable& placed) {
  archive(placed.name, placed.address);
}

}  // namespace slate::injector

namespace slate::daemon {
namespace {

/// Codes that a text may be refused with. Others would say something of the device or the engine.
constexpr ErrorCode kCodesOfText[] = {ErrorCode::kInvalidValue,   ErrorCode::kNotSupported,
                                      ErrorCode::kSymbolNotFound, ErrorCode::kInvalidPtx,
                                      ErrorCode::kLimit,          ErrorCode::kIo};
constexpr std::size_t kMostMessageBytes = 4096;

struct Head {
  ErrorCode code = ErrorCode::kNone;
  std::string message;
  std::vector<std::byte> body;
};

std::string printable(std::string text) {
  text.resize(std::min(text.size(), kMostMessageBytes));
  std::ranges::replace_if(
      text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

}  // namespace

template <typename Archive>
void fields(Archive& archive, FirstLaunch& launch) {
  archive(launch.is_known, launch.further, launch.parameters, launch.shared_bytes, launch.low,
          launch.bytes);
  for (const std::size_t axis : {0, 1, 2}) archive(launch.grid[axis], launch.block[axis]);
}

template <typename Archive>
void fields(Archive& archive, FormRequest& request) {
  archive(request.kernel, request.profile, request.assembled, request.has_native, request.native_sm,
          request.most_registers, request.lean, request.fence, request.reserved_shared,
          request.native_registers, request.launch);
}

template <typename Archive>
void fields(Archive& archive, Question& question) {
  archive(question.topic, question.placed, question.forms, question.home.base, question.home.bytes);
}

template <typename Archive>
void fields(Archive& archive, PlacedText::Contents& contents) {
  archive(contents.bytes, contents.beginning);
}

template <typename Archive>
void fields(Archive& archive, PlacedText& placed) {
  archive(placed.text, placed.contents);
}

template <typename Archive>
void fields(Archive& archive, HomedCode::Bank& bank) {
  archive(bank.home.base, bank.home.bytes, bank.anchor, bank.offset);
}

namespace {

/// A variable of an answer, and the whole answer.
struct NamedRange {
  std::string name;
  device::AddressRange range;
};
struct HomeAnswer {
  std::vector<std::byte> code, contents;
  std::vector<NamedRange> variables;
  std::vector<HomedCode::Bank> banks;
};

template <typename Archive>
void fields(Archive& archive, NamedRange& named) {
  archive(named.name, named.range.base, named.range.bytes);
}

template <typename Archive>
void fields(Archive& archive, HomeAnswer& answer) {
  archive(answer.code, answer.contents, answer.variables, answer.banks);
}

template <typename T>
std::vector<std::byte> to_bytes(const T& value) {
  FieldWriter writer;
  writer(value);
  return writer.take();
}

template <typename T>
Result<T> from_bytes(std::span<const std::byte> bytes) {
  T value{};
  FieldReader reader(bytes);
  reader(value);
  if (const auto done = reader.finish(); !done) return std::unexpected(done.error());
  return value;
}

/// The body of an answer that is no error.
Result<std::vector<std::byte>> body_of(std::span<const std::byte> answer) {
  Head head;
  FieldReader reader(answer);
  reader(head.code, head.message, head.body);
  if (const auto done = reader.finish(); !done) return std::unexpected(done.error());
  if (head.code == ErrorCode::kNone) return std::move(head.body);
  const bool is_of_text = std::ranges::find(kCodesOfText, head.code) != std::end(kCodesOfText);
  return fail(is_of_text ? head.code : ErrorCode::kInternal, printable(std::move(head.message)));
}

}  // namespace

std::vector<std::byte> pack(const Question& question) {
  return to_bytes(question);
}

std::vector<std::byte> Reading::answer(std::span<const std::byte> question) {
  const Answer found = find(question);
  if (!found) return refusal(found.error());
  FieldWriter writer;
  writer(ErrorCode::kNone, std::string(), *found);
  return writer.take();
}

std::vector<std::byte> Reading::refusal(const Error& why) {
  FieldWriter writer;
  writer(why.code, why.message, std::vector<std::byte>());
  return writer.take();
}

Reading::Answer Reading::find(std::span<const std::byte> question) {
  const auto asked = from_bytes<Question>(question);
  if (!asked) return std::unexpected(asked.error());
  switch (asked->topic) {
    case Topic::kVariables:
      return find_variables();
    case Topic::kPlaces:
      return find_places(asked->placed);
    case Topic::kForms:
      return find_forms(asked->forms);
    case Topic::kHome:
      return find_home(asked->home);
  }
  return fail(ErrorCode::kInvalidValue, "a question that no reader knows");
}

Reading::Answer Reading::find_variables() {
  if (module_) return to_bytes(variable_bytes(*module_));
  const auto parsed = parse(false);
  if (!parsed) return std::unexpected(parsed.error());
  return to_bytes(variable_bytes(**parsed));
}

Reading::Answer Reading::find_places(const std::vector<injector::PlacedVariable>& placed) {
  const auto found = module();
  if (!found) return std::unexpected(found.error());
  auto text = injector::place_variables(**found, placed);
  if (!text) return std::unexpected(text.error());
  PlacedText result{.text = std::move(*text), .contents = {}};
  for (const injector::PlacedVariable& each : placed) {
    const ptx::Variable& variable = *(*found)->find_variable(each.name);
    result.contents.push_back({variable.bytes, injector::placed_contents(variable, placed)});
  }
  return to_bytes(result);
}

Reading::Answer Reading::find_home(device::AddressRange home) {
  const auto found = module();
  if (!found) return std::unexpected(found.error());
  auto code = move_home(**found, home);
  if (!code) return std::unexpected(code.error());
  HomeAnswer answer{.code = std::move(code->code),
                    .contents = std::move(code->contents),
                    .variables = {},
                    .banks = std::move(code->banks)};
  for (const auto& [name, range] : code->variables) answer.variables.push_back({name, range});
  return to_bytes(answer);
}

Reading::Answer Reading::find_forms(const FormRequest& request) {
  if (kernel_ == nullptr || kernel_name_ != request.kernel) {
    const auto found = module();
    if (!found) return std::unexpected(found.error());
    auto extracted = extract(**found, request.kernel);
    if (!extracted) return std::unexpected(extracted.error());
    kernel_ = std::move(*extracted);
    kernel_name_ = request.kernel;
  }
  const auto text = write_forms_of(*kernel_, request);
  if (!text) return std::unexpected(text.error());
  return pack(*text);
}

Result<std::unique_ptr<const ptx::Module>> Reading::parse(bool bodies) const {
  ptx::ParseLimits limits = ptx::ParseLimits::for_text(text_.size());
  limits.bodies = bodies;
  limits.is_over = is_over_;
  return ptx::parse(text_, limits);
}

Result<const ptx::Module*> Reading::module() {
  if (!module_) {
    auto parsed = parse(true);
    if (!parsed) return std::unexpected(parsed.error());
    module_ = std::move(*parsed);
  }
  return module_.get();
}

Result<std::uint64_t> unpack_variables(std::span<const std::byte> answer) {
  const auto body = body_of(answer);
  if (!body) return std::unexpected(body.error());
  return from_bytes<std::uint64_t>(*body);
}

Result<PlacedText> unpack_places(std::span<const std::byte> answer, std::size_t placed) {
  const auto body = body_of(answer);
  if (!body) return std::unexpected(body.error());
  auto result = from_bytes<PlacedText>(*body);
  if (result && result->contents.size() != placed)
    return fail(ErrorCode::kInvalidValue, "contents of other variables");
  return result;
}

Result<HomedCode> unpack_home(std::span<const std::byte> answer, device::AddressRange home) {
  const auto body = body_of(answer);
  if (!body) return std::unexpected(body.error());
  auto found = from_bytes<HomeAnswer>(*body);
  if (!found) return std::unexpected(found.error());
  HomedCode code{.code = std::move(found->code),
                 .contents = std::move(found->contents),
                 .variables = {},
                 .banks = std::move(found->banks)};
  for (auto& [name, range] : found->variables) code.variables.emplace(std::move(name), range);
  if (!keeps_to(code, home)) return fail(ErrorCode::kInvalidValue, "variables beside their home");
  return code;
}

Result<FormText> unpack_forms(std::span<const std::byte> answer, const FormRequest& request) {
  const auto body = body_of(answer);
  if (!body) return std::unexpected(body.error());
  return unpack_form_text(*body, request);
}

}  // namespace slate::daemon
