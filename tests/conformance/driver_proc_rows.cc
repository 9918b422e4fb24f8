// Rows of cuGetProcAddress() and cuGetExportTable().
#include <dlfcn.h>

#include "driver_rows.h"

namespace conformance {
namespace {

/// What is given for a name, in words.
std::string given(void* function, const char* symbol) {
  static void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (function == nullptr) return "null";
  return function == ::dlsym(driver, symbol) ? symbol : "another";
}

struct Query {
  const char* name;
  int version;
  cuuint64_t flags;
  const char* symbol;  // the function that is expected
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = unknown<CUdriverProcAddressQueryResult>(77);

  CUresult ask() { return cuGetProcAddress(name, &function, version, flags, &status); }
  std::string answer() const {
    return text(static_cast<int>(status)) + " " + given(function, symbol);
  }
};

void query_row(const char* row, Query query) {
  ROW(row, query.ask(), query.answer());
}

}  // namespace

void proc_address_rows() {
  query_row("cuGetProcAddress/newer", {"cuMemAlloc", 13000, 0, "cuMemAlloc_v2"});
  query_row("cuGetProcAddress/from-3020", {"cuMemAlloc", 3020, 0, "cuMemAlloc_v2"});
  query_row("cuGetProcAddress/oldest", {"cuMemAlloc", 2000, 0, "cuMemAlloc"});
  query_row("cuGetProcAddress/too-old", {"cuLaunchKernelEx", 11000, 0, "cuLaunchKernelEx"});
  query_row("cuGetProcAddress/with-suffix", {"cuMemAlloc_v2", 13000, 0, "cuMemAlloc_v2"});
  query_row("cuGetProcAddress/with-per-thread-suffix",
            {"cuLaunchKernel_ptsz", 13000, 0, "cuLaunchKernel_ptsz"});
  query_row("cuGetProcAddress/unknown", {"cuMakeCoffee", 13000, 0, ""});
  query_row("cuGetProcAddress/empty", {"", 13000, 0, ""});
  query_row("cuGetProcAddress/future", {"cuMemAlloc", 99990, 0, "cuMemAlloc_v2"});
  query_row("cuGetProcAddress/legacy-stream", {"cuLaunchKernel", 13000, 1, "cuLaunchKernel"});
  query_row("cuGetProcAddress/per-thread-stream",
            {"cuLaunchKernel", 13000, 2, "cuLaunchKernel_ptsz"});
  query_row("cuGetProcAddress/both-streams", {"cuLaunchKernel", 13000, 3, "cuLaunchKernel_ptsz"});
  query_row("cuGetProcAddress/flags", {"cuLaunchKernel", 13000, 4, "cuLaunchKernel"});
  query_row("cuGetProcAddress/device-12000", {"cuCtxGetDevice", 12000, 0, "cuCtxGetDevice"});
  query_row("cuGetProcAddress/device-13000", {"cuCtxGetDevice", 13000, 0, "cuCtxGetDevice_v2"});
  query_row("cuGetProcAddress/synchronize", {"cuCtxSynchronize", 13000, 0, "cuCtxSynchronize_v2"});
  query_row("cuGetProcAddress/elapsed", {"cuEventElapsedTime", 12080, 0, "cuEventElapsedTime_v2"});
  query_row("cuGetProcAddress/capture-10000",
            {"cuStreamBeginCapture", 10000, 0, "cuStreamBeginCapture"});
  query_row("cuGetProcAddress/capture-10010",
            {"cuStreamBeginCapture", 10010, 0, "cuStreamBeginCapture_v2"});
  query_row("cuGetProcAddress/capture-info",
            {"cuStreamGetCaptureInfo", 12030, 0, "cuStreamGetCaptureInfo_v3"});
  query_row("cuGetProcAddress/itself", {"cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"});
  query_row("cuGetProcAddress/itself-11030", {"cuGetProcAddress", 11030, 0, "cuGetProcAddress"});
  void* function = nullptr;
  ROW("cuGetProcAddress/no-status", cuGetProcAddress("cuInit", &function, 13000, 0, nullptr),
      given(function, "cuInit"));
  ROW("cuGetProcAddress/null", cuGetProcAddress("cuInit", nullptr, 13000, 0, nullptr));
  ROW("cuGetProcAddress/no-name", cuGetProcAddress(nullptr, &function, 13000, 0, nullptr));

  const void* table = &function;
  const CUuuid nobodys{};
  ROW("cuGetExportTable/unknown", cuGetExportTable(&table, &nobodys), yes(table == nullptr));
}

}  // namespace conformance
