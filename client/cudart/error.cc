// Error functions. None needs a session.
#include <cstddef>

#include "client/cudart/front.h"
#include "client/cudart/last_error.h"
#include "client/session/error_table.h"

namespace slate::cudart {
namespace {

struct ErrorName {
  cudaError_t number;
  const char* name;
};

constexpr ErrorName kErrors[] = {
#define SLATE_CUDA_ERROR(name) {name, #name},
#include "client/cudart/error_names.inc"
#undef SLATE_CUDA_ERROR
};

constexpr const char* kUnrecognized = "unrecognized error code";

const ErrorName* find(cudaError_t number) {
  for (const ErrorName& error : kErrors) {
    if (error.number == number) return &error;
  }
  return nullptr;
}

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;

extern "C" {

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error();
  last_error() = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() {
  return last_error();
}

const char* cudaGetErrorName(cudaError_t error) {
  const ErrorName* found = find(error);
  return found != nullptr ? found->name : kUnrecognized;
}

const char* cudaGetErrorString(cudaError_t error) {
  return find(error) != nullptr ? slate::client::error_text(error) : kUnrecognized;
}

}  // extern "C"
