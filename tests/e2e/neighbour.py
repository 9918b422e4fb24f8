"""A program in Python, over libslate's CUDA calls, that knows what must come of its kernels: the neighbour whom others attack.
It runs in a fork of another user, which need not be able to start an interpreter. Not a test."""

import ctypes
import json
import os
import time
import traceback

from harness import BUILD, ON_GPU

# Every thread goes through a sequence that leaves no bit of its word alone.
PTX = b""".version 7.0
.target sm_75
.address_size 64
.visible .entry stir(.param .u64 words, .param .u32 count, .param .u32 rounds, .param .u32 salt)
{
    .reg .pred %p<3>;
    .reg .b32 %r<9>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [words];
    ld.param.u32 %r1, [count];
    ld.param.u32 %r2, [rounds];
    ld.param.u32 %r3, [salt];
    mov.u32 %r4, %ctaid.x;
    mov.u32 %r5, %ntid.x;
    mov.u32 %r6, %tid.x;
    mad.lo.u32 %r7, %r4, %r5, %r6;
    setp.ge.u32 %p1, %r7, %r1;
    @%p1 bra DONE;
    mul.wide.u32 %rd2, %r7, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.u32 %r8, [%rd3];
NEXT:
    mad.lo.u32 %r8, %r8, 1664525, %r3;
    sub.u32 %r2, %r2, 1;
    setp.ne.u32 %p2, %r2, 0;
    @%p2 bra NEXT;
    st.global.u32 [%rd3], %r8;
DONE:
    ret;
}
"""
MULTIPLIER, MASK = 1664525, 0xFFFFFFFF
BLOCK = 128
BLOCKS, ROUNDS = (264, 20000) if ON_GPU else (4, 8)  # sim executes at a ten-thousandth of a GPU's speed


class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


class Refused(Exception):
    """A call answered a code that it must not."""


class Cuda:
    def __init__(self):
        self.library = ctypes.CDLL(os.path.join(BUILD, "lib", "libslate.so.0"))

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code != 0:
            raise Refused("%s: %d" % (name, code))

    def kernel(self, ptx, name):
        module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cudaLibraryLoadData", ctypes.byref(module), ctypes.c_char_p(ptx), None, None, 0, None, None, 0)
        self.call("cudaLibraryGetKernel", ctypes.byref(kernel), module, ctypes.c_char_p(name))
        return kernel

    def allocate(self, size):
        pointer = ctypes.c_void_p()
        self.call("cudaMalloc", ctypes.byref(pointer), ctypes.c_size_t(size))
        return pointer

    def launch(self, kernel, blocks, block, *arguments):
        array = (ctypes.c_void_p * len(arguments))(*[ctypes.cast(ctypes.pointer(each), ctypes.c_void_p) for each in arguments])
        self.call("cudaLaunchKernel", kernel, Dim3(blocks, 1, 1), Dim3(block, 1, 1), array, ctypes.c_size_t(0), None)

    def synchronize(self):
        self.call("cudaDeviceSynchronize")

    def write(self, pointer, data):
        self.call("cudaMemcpy", pointer, data, ctypes.c_size_t(ctypes.sizeof(data)), 1)

    def read(self, data, pointer):
        self.call("cudaMemcpy", data, pointer, ctypes.c_size_t(ctypes.sizeof(data)), 2)


class Stirrer:
    """Rounds of one launch each. After check() the words on the device are compared with those that the CPU computes."""

    def __init__(self, blocks=BLOCKS, rounds=ROUNDS):
        self.blocks, self.rounds, self.count = blocks, rounds, blocks * BLOCK
        self.step_factor, self.step_addend = 1, 0  # of one launch: m * word + a * salt
        for _ in range(rounds):
            self.step_factor = self.step_factor * MULTIPLIER & MASK
            self.step_addend = (self.step_addend * MULTIPLIER + 1) & MASK
        self.cuda = Cuda()
        self.kernel = self.cuda.kernel(PTX, b"stir")
        self.words = self.cuda.allocate(4 * self.count)
        # A word is m * its first value + a. All begin as their number, so two numbers are enough of a model.
        self.factor, self.addend = 1, 0
        self.cuda.write(self.words, (ctypes.c_uint32 * self.count)(*range(self.count)))

    def stir(self, salt):
        """Returns the seconds that the launch took, with its end."""
        began = time.perf_counter()
        self.cuda.launch(self.kernel, self.blocks, BLOCK, self.words, ctypes.c_uint32(self.count), ctypes.c_uint32(self.rounds),
                         ctypes.c_uint32(salt))
        self.cuda.synchronize()
        seconds = time.perf_counter() - began
        self.factor = self.factor * self.step_factor & MASK
        self.addend = (self.addend * self.step_factor + salt * self.step_addend) & MASK
        return seconds

    def wrong_words(self):
        got = (ctypes.c_uint32 * self.count)()
        self.cuda.read(got, self.words)
        return sum(got[i] != (self.factor * i + self.addend) & MASK for i in range(self.count))


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def report_for_ever(write_end, interval):
    """Stirs without pause, and writes what each interval came to as a line of JSON. `launching_s` leaves out the checks."""
    salt, stirrer = 1, Stirrer()
    with os.fdopen(write_end, "w", buffering=1) as out:
        while True:
            times, wrong, began, checked, at = [], 0, time.perf_counter(), 0, time.time()
            while time.perf_counter() - began < interval:
                times.append(stirrer.stir(salt))
                salt = salt * 69069 + 1 & MASK
                if len(times) % 50 == 0:
                    wrong += stirrer.wrong_words()
                    checked += stirrer.count
            wrong += stirrer.wrong_words()
            seconds = time.perf_counter() - began
            out.write(json.dumps({"began": at, "launches": len(times), "seconds": seconds, "launching_s": sum(times), "wrong": wrong,
                                  "checked": checked + stirrer.count, "p50_ms": 1000 * quantile(times, 0.5),
                                  "p99_ms": 1000 * quantile(times, 0.99)}) + "\n")


def fork_as(user, environment, action, *arguments):
    """The process of another user that does this, in a session of its own; it ends when the action does."""
    pid = os.fork()
    if pid != 0:
        return pid
    code = 1
    try:
        os.setsid()
        os.environ.update(environment)
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
        code = action(*arguments) or 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)
