// cuGetErrorName and cuGetErrorString. They need neither cuInit() nor a session, but end with the
// program.
#include <algorithm>
#include <iterator>

#include "client/driver/front.h"
#include "client/session/error_table.h"

namespace slate::driver {
namespace {

struct ErrorName {
  CUresult number;
  const char* name;
};

constexpr ErrorName kErrors[] = {
#define SLATE_DRIVER_ERROR(name) {name, #name},
#include "client/driver/error_names.inc"
#undef SLATE_DRIVER_ERROR
};
static_assert(std::ranges::is_sorted(kErrors, {}, &ErrorName::number));

/// Null for a number that is no CUresult.
const char* error_name(CUresult number) {
  const auto* const found = std::ranges::lower_bound(kErrors, number, {}, &ErrorName::number);
  return found != std::end(kErrors) && found->number == number ? found->name : nullptr;
}

CUresult give_text(const char** where, const char* text) {
  if (Life::usable() == CUDA_ERROR_DEINITIALIZED) return CUDA_ERROR_DEINITIALIZED;
  if (where == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *where = text;
  return text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace
}  // namespace slate::driver

using namespace slate::driver;

extern "C" {

CUresult cuGetErrorName(CUresult error, const char** pStr) {
  return give_text(pStr, error_name(error));
}

CUresult cuGetErrorString(CUresult error, const char** pStr) {
  const bool is_known = error_name(error) != nullptr;
  return give_text(pStr, is_known ? slate::client::error_text(error) : nullptr);
}

}  // extern "C"
