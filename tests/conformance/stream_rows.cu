// Streams, events, functions of the host in streams.
#include "conformance.h"

namespace conformance {
namespace {

void nothing(void*) {}
void nothing_either(cudaStream_t, cudaError_t, void*) {}

}  // namespace

void stream_rows() {
  cudaDeviceSynchronize();  // nothing of earlier rows is under way
  cudaStream_t stream = nullptr, other = nullptr;
  ROW("cudaStreamCreate/null", cudaStreamCreate(nullptr));
  ROW("cudaStreamCreate/normal", cudaStreamCreate(&stream));
  ROW("cudaStreamCreateWithFlags/normal", cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  unsigned flags = 99;
  ROW("cudaStreamGetFlags/normal", cudaStreamGetFlags(other, &flags), std::to_string(flags));
  ROW("cudaStreamGetFlags/null", cudaStreamGetFlags(other, nullptr));
  cudaStreamDestroy(other);
  ROW("cudaStreamCreateWithFlags/unknown", cudaStreamCreateWithFlags(&other, 0x8000));
  int priority = 99;
  ROW("cudaStreamCreateWithPriority/beyond",
      cudaStreamCreateWithPriority(&other, cudaStreamDefault, -100));
  ROW("cudaStreamGetPriority/clamped", cudaStreamGetPriority(other, &priority),
      std::to_string(priority));
  cudaStreamDestroy(other);
  int device = -1;
  ROW("cudaStreamGetDevice/normal", cudaStreamGetDevice(stream, &device), std::to_string(device));
  ROW("cudaStreamQuery/idle", cudaStreamQuery(stream));
  ROW("cudaStreamQuery/default", cudaStreamQuery(nullptr));
  ROW("cudaStreamSynchronize/idle", cudaStreamSynchronize(stream));
  ROW("cudaStreamSynchronize/per-thread", cudaStreamSynchronize(cudaStreamPerThread));
  ROW("cudaStreamWaitEvent/null", cudaStreamWaitEvent(stream, nullptr));
  unsigned long long first = 0, second = 0;
  cudaStreamGetId(stream, &first);
  cudaStreamGetId(nullptr, &second);
  value_row("cudaStreamGetId/differ", static_cast<int>(first != second));
  cudaStreamAttrValue value{};
  ROW("cudaStreamGetAttribute/policy",
      cudaStreamGetAttribute(stream, cudaStreamAttributeSynchronizationPolicy, &value),
      std::to_string(value.syncPolicy));
  ROW("cudaStreamGetAttribute/null",
      cudaStreamGetAttribute(stream, cudaStreamAttributeSynchronizationPolicy, nullptr));
  ROW("cudaStreamGetAttribute/unknown",
      cudaStreamGetAttribute(stream, unknown<cudaStreamAttrID>(99), &value));
  value.syncPolicy = cudaSyncPolicySpin;
  ROW("cudaStreamSetAttribute/policy",
      cudaStreamSetAttribute(stream, cudaStreamAttributeSynchronizationPolicy, &value));
  ROW("cudaStreamDestroy/null", cudaStreamDestroy(nullptr));
  ROW("cudaStreamDestroy/normal", cudaStreamDestroy(stream));
}

void event_rows() {
  cudaEvent_t start = nullptr, stop = nullptr, untimed = nullptr;
  float elapsed = -1;
  ROW("cudaEventCreate/null", cudaEventCreate(static_cast<cudaEvent_t*>(nullptr)));
  ROW("cudaEventCreate/normal", cudaEventCreate(&start));
  cudaEventCreate(&stop);
  ROW("cudaEventCreateWithFlags/untimed",
      cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  ROW("cudaEventCreateWithFlags/unknown", cudaEventCreateWithFlags(&untimed, 0x8000));
  ROW("cudaEventCreateWithFlags/timed-interprocess",
      cudaEventCreateWithFlags(&untimed, cudaEventInterprocess));
  ROW("cudaEventQuery/unrecorded", cudaEventQuery(start));
  ROW("cudaEventSynchronize/unrecorded", cudaEventSynchronize(start));
  ROW("cudaEventElapsedTime/unrecorded", cudaEventElapsedTime(&elapsed, start, stop));
  ROW("cudaEventRecord/normal", cudaEventRecord(start, nullptr));
  ROW("cudaEventRecord/null", cudaEventRecord(nullptr, nullptr));
  ROW("cudaEventRecordWithFlags/normal", cudaEventRecordWithFlags(stop, nullptr, 0));
  ROW("cudaEventRecordWithFlags/external",
      cudaEventRecordWithFlags(stop, nullptr, cudaEventRecordExternal));
  ROW("cudaEventRecordWithFlags/unknown", cudaEventRecordWithFlags(stop, nullptr, 0x8000));
  ROW("cudaEventSynchronize/normal", cudaEventSynchronize(stop));
  ROW("cudaEventQuery/finished", cudaEventQuery(stop));
  ROW("cudaEventElapsedTime/normal", cudaEventElapsedTime(&elapsed, start, stop),
      elapsed >= 0 ? "not negative" : "negative");
  ROW("cudaEventElapsedTime/null", cudaEventElapsedTime(nullptr, start, stop));
  cudaEventRecord(untimed, nullptr);
  cudaEventSynchronize(untimed);
  cudaGetLastError();
  ROW("cudaEventElapsedTime/untimed", cudaEventElapsedTime(&elapsed, start, untimed));
  ROW("cudaEventDestroy/null", cudaEventDestroy(nullptr));
  ROW("cudaEventDestroy/normal", cudaEventDestroy(start));
  cudaEventDestroy(stop);
  cudaEventDestroy(untimed);
  cudaGetLastError();
}

void host_function_rows() {
  ROW("cudaLaunchHostFunc/normal", cudaLaunchHostFunc(nullptr, nothing, nullptr));
  ROW("cudaLaunchHostFunc/null", cudaLaunchHostFunc(nullptr, nullptr, nullptr));
  ROW("cudaStreamAddCallback/normal", cudaStreamAddCallback(nullptr, nothing_either, nullptr, 0));
  ROW("cudaStreamAddCallback/null", cudaStreamAddCallback(nullptr, nullptr, nullptr, 0));
  ROW("cudaStreamAddCallback/flags", cudaStreamAddCallback(nullptr, nothing_either, nullptr, 1));
  ROW("cudaStreamSynchronize/after-host-functions", cudaStreamSynchronize(nullptr));
}

}  // namespace conformance
