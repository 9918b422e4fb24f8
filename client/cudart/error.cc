// Error functions. None needs a session.
#include <cstddef>

#include "client/cudart/front.h"
#include "client/cudart/last_error.h"

namespace slate::cudart {
namespace {

struct ErrorText {
  cudaError_t number;
  const char* name;
  const char* text;
};

constexpr ErrorText kErrors[] = {
#define SLATE_CUDA_ERROR(name, text) {name, #name, text},
#include "client/cudart/error_names.inc"
#undef SLATE_CUDA_ERROR
};

constexpr const char* kUnrecognized = "unrecognized error code";

const ErrorText* find(cudaError_t number) {
  for (const ErrorText& error : kErrors) {
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
  const ErrorText* found = find(error);
  return found != nullptr ? found->name : kUnrecognized;
}

const char* cudaGetErrorString(cudaError_t error) {
  const ErrorText* found = find(error);
  return found != nullptr ? found->text : kUnrecognized;
}

}  // extern "C"
