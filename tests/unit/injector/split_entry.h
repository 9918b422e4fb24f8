// PTX of a kernel whose threads part ways: for the tests of what is done about early returns.
#pragma once

#include <string>

namespace slate::test {

/// `body` in a kernel, before its return. %p1 and %r1 differ between threads, %p2 and %r2 do not.
inline std::string split_entry(const std::string& body) {
  return ".version 8.8\n.target sm_90\n.address_size 64\n.const .align 4 .b32 table[4];\n"
         ".visible .entry k(.param .u64 a, .param .u32 n)\n{\n"
         ".reg .pred %p<9>; .reg .b32 %r<30>; .reg .b64 %d<9>;\n"
         ".shared .align 4 .b8 words[64];\n"
         "mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n];\n"
         "setp.ge.u32 %p1, %r1, %r2; setp.ge.u32 %p2, %r2, 7;\n" +
         body + "\nret;\n}\n";
}

}  // namespace slate::test
