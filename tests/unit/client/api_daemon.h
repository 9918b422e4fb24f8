// A fake daemon in a directory of its own, for the tests of slate.h. Shows nothing of slate's own
// headers, since slate::Error of base/result.h and that of slate.h cannot be seen together.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace slate::test {

class FakeDaemon;

/// PTX with the kernels "plain" and scale<float> and the variable "factor".
inline constexpr const char* kTestPtx =
    ".version 9.0\n.target sm_90\n.global .f32 factor;\n.entry plain(.param .u64 p) { ret; }\n"
    ".entry _Z5scaleIfEvPT_(.param .u64 p) { ret; }\n";

/// Starts with no session, no last error, an empty cache and a compiler that gives kTestPtx.
class ApiDaemon {
 public:
  ApiDaemon();
  ~ApiDaemon();
  ApiDaemon(const ApiDaemon&) = delete;
  ApiDaemon& operator=(const ApiDaemon&) = delete;

  FakeDaemon& fake() { return *fake_; }
  const std::string& directory() const { return directory_; }
  void describe_parameters(const std::vector<unsigned>& sizes);
  /// Waits until all that was sent has come.
  void settle();
  int launches() const;
  int unloads() const;
  /// Hangs up on everybody.
  void stop();

 private:
  std::string directory_;
  std::unique_ptr<FakeDaemon> fake_;
};

}  // namespace slate::test
