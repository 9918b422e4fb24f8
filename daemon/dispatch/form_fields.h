// The members of a kernel's forms that are kept and sent (fields.h). Those that only the analysis
// uses stay behind.
#pragma once

#include "daemon/dispatch/fields.h"
#include "injector/fence/access_bounds.h"
#include "injector/forms/inject.h"

namespace slate::injector {

template <typename Archive>
void fields(Archive& archive, Work& work) {
  archive(work.flops, work.bytes, work.instructions);
}

template <typename Archive>
void fields(Archive& archive, ParameterWord& word) {
  archive(word.offset, word.extent, word.parameter, word.within);
}

template <typename Archive>
void fields(Archive& archive, ReachedMemory& memory) {
  archive(memory.kind, memory.variable, memory.words, memory.is_constant, memory.read,
          memory.written, memory.atomic, memory.ordered, memory.hinted);
}

template <typename Archive>
void fields(Archive& archive, BoundStep& step) {
  archive(step.op, step.bits, step.is_signed, step.a, step.b, step.c, step.value);
}

template <typename Archive>
void fields(Archive& archive, BoundClaim& claim) {
  archive(claim.kind, claim.step, claim.bytes, claim.limit);
}

template <typename Archive>
void fields(Archive& archive, PassedLimit& limit) {
  archive(limit.least_of, limit.parameter, limit.offset, limit.shift, limit.is_signed, limit.mask);
}

template <typename Archive>
void fields(Archive& archive, PassedLimits& passed) {
  archive(passed.at, passed.limits);
}

template <typename Archive>
void fields(Archive& archive, AccessBounds& bounds) {
  archive(bounds.steps, bounds.claims, bounds.constants, bounds.passed);
}

template <typename Archive>
void fields(Archive& archive, Reach& reach) {
  archive(reach.memory, reach.effects, reach.pointers, reach.complete);
}

template <typename Archive>
void fields(Archive& archive, EntryAnalysis& analysis) {
  archive(analysis.worker.why_not, analysis.slice.why_not, analysis.profile.why_not,
          analysis.uncounted, analysis.may_fuse, analysis.drains, analysis.late_exits,
          analysis.separates_blocks, analysis.needs_whole_rows, analysis.needs_whole_warps,
          analysis.independent_blocks, analysis.copies_asynchronously, analysis.calls,
          analysis.functions_read_block_index, analysis.barriers, analysis.warp_wide,
          analysis.static_shared_bytes, analysis.parameter_bytes, analysis.reach);
}

template <typename Archive>
void fields(Archive& archive, KernelForms& forms) {
  archive(forms.name, forms.sm, forms.worker, forms.compact_worker, forms.slice, forms.profile,
          forms.work, forms.sums_open, forms.analysis);
}

}  // namespace slate::injector
