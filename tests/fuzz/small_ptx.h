// A small module. make_corpus.py takes its text from here, for the seeds in which code is loaded.
#pragma once

namespace slate::fuzz {

inline constexpr char kSmallPtx[] = R"(.version 7.8
.target sm_52
.address_size 64
.global .align 4 .u32 g = 7;
.visible .entry k(.param .u64 p)
{
.reg .b64 %rd<3>;
.reg .b32 %r<2>;
ld.param.u64 %rd1, [p];
mov.u32 %r1, %ctaid.x;
st.global.u32 [%rd1], %r1;
ret;
}
)";

}  // namespace slate::fuzz
