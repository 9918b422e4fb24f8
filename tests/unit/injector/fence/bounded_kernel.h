// The bounded copy of a kernel whose text a test has written.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "injector/fence/fence.h"

namespace slate::injector {

struct BoundedKernel {
  std::unique_ptr<const ptx::Module> module;  // with the copy behind the kernel
  FenceVerdict verdict;                       // of the copy
};

/// Of the entry `kernel`. `launch`: as FenceOptions::launch.
inline BoundedKernel bounded_kernel(const std::string& text, const LaunchValues* launch) {
  BoundedKernel result;
  const auto module = ptx::parse(text);
  EXPECT_TRUE(module) << module.error().message;
  const auto copied = with_bounded_copy(**module, "kernel");
  EXPECT_TRUE(copied);
  auto both = ptx::parse(*copied);
  EXPECT_TRUE(both) << both.error().message;
  result.module = std::move(*both);
  const auto fenced = fence(*result.module, {.names = OwnNames::kExpected, .launch = launch});
  EXPECT_TRUE(fenced) << fenced.error().message;
  if (fenced) result.verdict = fenced->entries.back();
  EXPECT_EQ(result.verdict.name, std::string("kernel") + kBoundedSuffix);
  return result;
}

}  // namespace slate::injector
