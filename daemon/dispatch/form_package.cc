// How made forms are kept: as flat bytes behind a version.
#include "daemon/dispatch/form_fields.h"
#include "daemon/dispatch/kernel_forms.h"

namespace slate::daemon {
namespace {

constexpr std::uint32_t kVersion = 0x5f460007;  // bytes of an earlier version begin otherwise

}  // namespace

template <typename Archive>
void fields(Archive& archive, MadeForms& made) {
  archive(made.forms, made.variables, made.code, made.why_none, made.functions, made.bounds,
          made.cost_ms);
}

std::vector<std::byte> pack(const MadeForms& made) {
  FieldWriter writer;
  writer(kVersion, made);
  return writer.take();
}

Result<MadeForms> unpack(std::span<const std::byte> bytes) {
  MadeForms made{.forms = {},
                 .variables = {},
                 .kind = device::ImageKind::kCubin,
                 .code = {},
                 .why_none = {},
                 .functions = {},
                 .bounds = {},
                 .cost_ms = 0};
  std::uint32_t version = 0;
  FieldReader reader(bytes);
  reader(version, made);
  if (version != kVersion || !reader.finish())
    return fail(ErrorCode::kInvalidValue, "damaged forms, or forms of another version of slate");
  return made;
}

}  // namespace slate::daemon
