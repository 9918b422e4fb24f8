"""What hostile programs do to slated, each in a fork of another user. Not a test.

ATTACKS has those that go on until they are told to end. They say "ready" once they have done their worst."""

import ctypes
import mmap
import os
import random
import re
import signal
import socket
import struct
import time
import warnings

import neighbour
from harness import BUILD, SLOW

ATTACKER = 65533  # a user
SQUATTED = 4000  # names
HELLO = "<QII16sdiIQ64s"
MAGIC = 0x31304554414C5323
SESSION, CONTROL = 1, 2
GARBAGE_BYTES = 600 << 10  # of a segment: status page and ring


class Visitor:
    """A socket to slated, without libslate."""

    def __init__(self, runtime):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(20 * SLOW)
        self.socket.connect(os.path.join(runtime, "slated.sock"))

    def hello(self, kind, protocol):
        self.socket.send(struct.pack(HELLO, MAGIC, protocol, kind, b"attack", 0, 0, 0, 0, b"attacker"))

    def welcome(self):
        """Status, whether to come again, and the reason. The descriptors are kept."""
        data, self.descriptors, _, _ = socket.recv_fds(self.socket, 4096, 4)
        if not data:
            return None
        _, status, _, _, again, _, message = struct.unpack("<QIIQII160s", data)
        return status, bool(again), message.split(b"\0")[0].decode()


def protocol_of(runtime):
    visitor = Visitor(runtime)
    visitor.hello(SESSION, 1)
    return int(re.search(r"speaks protocol (\d+)", visitor.welcome()[2]).group(1))


# --- What the attacker's process does. It says "ready" when it has done its worst. ------------------------------------------


def ready():
    os.write(1, b"ready\n")
    signal.pause()


def squat(runtime):
    made = []
    for number in range(SQUATTED):
        for name in ("slate-%08x-%d-%d" % (number, number, number), "slate-pinned-%d-%d" % (number, number)):
            try:
                os.close(os.open("/dev/shm/" + name, os.O_CREAT | os.O_EXCL, 0o600))
                made.append(name)
            except OSError:
                pass

    def clean(*_):
        for name in made:
            os.unlink("/dev/shm/" + name)
        os._exit(0)

    signal.signal(signal.SIGTERM, clean)
    ready()


def flood(runtime, _):
    while True:
        try:
            visitor = Visitor(runtime)
            visitor.socket.send(os.urandom(200))
        except OSError:
            pass


def be_silent(runtime):
    silent = []
    for _ in range(300):
        silent.append(Visitor(runtime))
    os.write(1, b"ready\n")
    while True:
        time.sleep(0.2)
        silent = silent[1:] + [Visitor(runtime)]


def hoard(runtime, kind):
    protocol, held = protocol_of(runtime), []
    while True:
        visitor = Visitor(runtime)
        visitor.hello(kind, protocol)
        answer = visitor.welcome()
        if answer is None or answer[0] != 0:
            break
        held.append(visitor)
    ready()


DEEP = b""".version 7.0
.target sm_75
.address_size 64
.visible .entry deep(.param .u64 words)
{
    .local .align 4 .b8 frame[%d];
    .reg .b32 %%r<3>;
    .reg .b64 %%rd<6>;
    ld.param.u64 %%rd1, [words];
    ld.global.u32 %%r1, [%%rd1];
    mov.u64 %%rd2, frame;
    mul.wide.u32 %%rd3, %%r1, 4;
    add.s64 %%rd4, %%rd2, %%rd3;
    st.local.u32 [%%rd4], %%r1;
    ld.local.u32 %%r2, [%%rd2];
    st.global.u32 [%%rd1], %%r2;
    ret;
}
"""


def launch_deep(frame):
    """A launch of one thread with so many bytes of local memory: a GPU keeps as many for each thread that it can hold."""
    cuda = neighbour.Cuda()
    words = cuda.allocate(4)
    cuda.write(words, (ctypes.c_uint32 * 1)(1))
    cuda.launch(cuda.kernel(DEEP % frame, b"deep"), 1, 1, words)
    cuda.synchronize()


def take_local_memory(_):
    for frame in (256 << 10, 128 << 10, 64 << 10):
        try:
            launch_deep(frame)
            break
        except neighbour.Refused:
            pass
    ready()


def churn_local_memory(chance):
    while True:
        pid = os.fork()
        if pid == 0:
            try:
                launch_deep(chance.choice((16, 64, 128)) << 10)
            finally:
                os._exit(0)
        os.waitpid(pid, 0)


def take_memory(runtime):
    library = ctypes.CDLL(os.path.join(BUILD, "lib", "libslate.so.0"))
    pointer, size = ctypes.c_void_p(), 1 << 28
    while size >= 1 << 20:
        if library.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)) != 0:
            size //= 2
    ready()


def flood_launches(chance):
    stirrer = neighbour.Stirrer(blocks=1, rounds=1)
    while True:
        stirrer.cuda.launch(stirrer.kernel, 1, neighbour.BLOCK, stirrer.words, ctypes.c_uint32(1), ctypes.c_uint32(1), ctypes.c_uint32(1))


def spray_ring(runtime, chance):
    """A proper meeting, and then random words anywhere in the segment."""
    while True:
        visitor = Visitor(runtime)
        visitor.hello(SESSION, protocol_of(runtime))
        if visitor.welcome()[0] != 0:
            time.sleep(0.2)
            continue
        to_slated, _, segment = visitor.descriptors
        with mmap.mmap(segment, GARBAGE_BYTES) as memory:
            for _ in range(200):
                for _ in range(chance.randrange(1, 200)):
                    at = chance.randrange(GARBAGE_BYTES // 8) * 8
                    memory[at : at + 8] = (chance.getrandbits(64) >> chance.randrange(64)).to_bytes(8, "little")
                try:
                    os.write(to_slated, b"w")
                except OSError:
                    break
                time.sleep(0.002)
        for descriptor in visitor.descriptors:
            os.close(descriptor)
        visitor.socket.close()


def huge_module(kernels):
    """The neighbour's kernel so many times, each with a name of its own."""
    begin = neighbour.PTX.index(b".visible")
    return neighbour.PTX[:begin] + b"".join(
        neighbour.PTX[begin:].replace(b"stir", b"stir%d" % number) for number in range(kernels))


def load_huge_modules(chance):
    while True:
        text = huge_module(chance.randrange(200, 3000))
        if chance.random() < 0.3:
            text = text[: chance.randrange(len(text))]
        module = ctypes.c_void_p()
        library = neighbour.Cuda().library
        library.cudaLibraryLoadData(ctypes.byref(module), ctypes.c_char_p(text), None, None, 0, None, None, 0)
        if module:
            library.cudaLibraryUnload(module)


def be_refused(chance):
    library, pointer = neighbour.Cuda().library, ctypes.c_void_p()
    while True:
        wild = ctypes.c_void_p(chance.getrandbits(48))
        if not (library.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(1 << 50)) and library.cudaFree(wild)
                and library.cudaMemset(wild, 1, ctypes.c_size_t(4096))):
            return 7
        library.cudaStreamSynchronize(wild)
        time.sleep(0.01)


def several(count, action, *arguments):
    """Processes that do this for ever."""
    for _ in range(count - 1):
        if os.fork() == 0:
            break
    else:
        os.write(1, b"ready\n")
    action(*arguments, random.Random(os.getpid()))


ATTACKS = {
    "squat": squat,
    "flood": lambda runtime: several(4, flood, runtime),
    "be_silent": be_silent,
    "hoard_sessions": lambda runtime: hoard(runtime, SESSION),
    "hoard_questions": lambda runtime: hoard(runtime, CONTROL),
    "take_memory": take_memory,
    "take_local_memory": take_local_memory,
    "churn_local_memory": lambda _: several(2, churn_local_memory),
    "flood_launches": lambda _: several(8, flood_launches),
    "huge_modules": lambda _: several(3, load_huge_modules),
    "be_refused": lambda _: several(2, be_refused),
    "spray_ring": lambda runtime: several(2, spray_ring, runtime),
}


def begin_attack(daemon, name, user=ATTACKER):
    """Its process, and the first line that it says: "ready" once it has done its worst."""
    reader, writer = os.pipe()

    def attack():
        os.dup2(writer, 1)
        warnings.simplefilter("ignore")  # of sockets that it leaves open
        return ATTACKS[name](daemon.runtime)

    pid = neighbour.fork_as(user, daemon.environment, attack)
    os.close(writer)
    with os.fdopen(reader) as said:
        return pid, said.readline()


def end_attack(pid):
    """It has to be under way still: what came of one that has ended by itself says nothing."""
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    os.killpg(pid, signal.SIGTERM)
    os.waitpid(pid, 0)
    if ended is not None:
        raise AssertionError("the attack has ended by itself: %s" % (ended,))
