// What the driver's rows share. A row calls one function of libcuda.so.1 in one way and prints one
// line, "NAME: RESULT VALUES". Rows whose answer depends on the device print their name with a
// trailing "@". The order of the topics is that of a program's life: before cuInit(), without a
// context, with one, after its end.
#pragma once

#include <cuda.h>

#include <string>

#include "row.h"

namespace conformance {

/// Prints a row's answer.
void end_row(CUresult returned, const std::string& more = {});

/// The name of a result; its number when the driver does not know one.
std::string name_of(CUresult result);

template <typename T>
std::string text(T value) {
  return std::to_string(value);
}
inline std::string yes(bool value) {
  return value ? "yes" : "no";
}

// driver_life_rows.cc: what holds without a context, contexts, and the end.
void uninitialised_rows();
void device_rows();
void no_context_rows();
void primary_context_rows();
void own_context_rows();
void forked_child_rows();
void release_rows();
/// Rows of calls that a handler of exit() makes when the driver is gone.
void exit_rows();

// driver_memory_rows.cc
void memory_rows();
void pointer_rows();
void host_memory_rows();

// driver_work_rows.cc: streams, events, code, launches.
void stream_rows();
void event_rows();
void limit_rows();
void code_rows();
void launch_rows();

// driver_proc_rows.cc
void proc_address_rows();

}  // namespace conformance
