// A model of how quickly kernels run on parts of a GPU and beside one another: scaling over SMs,
// memory bandwidth, SMs shared. Numbers after measurements on an H200; 17 units of 8 SMs, the last
// of 4. Rates are progress over progress alone, natively, on the whole device.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "scheduler/placement.h"
#include "scheduler/policy.h"

namespace slate::scheduler::test {

struct ModelKernel {
  std::string name;
  double native_ms = 1;
  double worker = 1;            // speed of the worker form over native
  std::vector<double> scaling;  // speed at 8, 16, 32, 48, 64, 80, 96, 112 and 132 SMs
  double bandwidth = 0;         // of the peak, at native speed
  double mix = 0.03;            // what sharing SMs with others gains
  bool worker_legal = true, slice_legal = false;
  std::uint64_t blocks = 16384, wave = 1056;
  bool leaves_room = false;  // whether others run beside it as if it were not there

  double speed(Form form) const { return form == Form::kWorker ? worker : 1; }
  double best_speed() const { return worker_legal && worker > 1 ? worker : 1; }
  double scale(double sms) const;
};

struct Occupant {
  const ModelKernel* kernel = nullptr;
  Form form = Form::kNative;
  Placement placement;
};

Machine h200();
/// BS, GS, MM, TR, ST, CB, RG.
const std::vector<ModelKernel>& kernels();
const ModelKernel& kernel(std::string_view name);

/// Writes each occupant's rate into `rates`.
void rates_of(std::span<const Occupant> occupants, const Machine& machine, std::span<double> rates);

/// The lowest makespan of any sharing, split and choice of forms for two or three kernels, at least
/// 1's worth: turns are always possible. `floor` as in Settings.
double best_makespan(std::span<const ModelKernel* const> members, const Machine& machine,
                     double floor);
/// That of one arrangement.
double makespan_of(std::span<const Occupant> occupants, const Machine& machine, double floor);

}  // namespace slate::scheduler::test
