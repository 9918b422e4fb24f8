#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets' corpora: corpus/<target>/seed-*. Crashers that were found stand beside them, and stay.
Needs nvcc, for machine code and fat binaries.

usage: make_corpus.py
"""

import os
import re
import shutil
import struct
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
KERNELS = ("map", "async_copy", "early_return_lock", "look_back", "inline_ptx", "recursion", "texture", "named_barrier", "heap")


def read(*parts):
    with open(os.path.join(ROOT, *parts), "rb") as file:
        return file.read()


def write(target, name, data):
    folder = os.path.join(HERE, "corpus", target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "seed-" + name), "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def number(pattern, *parts):
    return re.search(pattern, read(*parts).decode()).group(1)


SMALL_PTX = re.search(r'R"\((.*)\)"', read("tests", "fuzz", "small_ptx.h").decode(), re.DOTALL).group(1)


# --- Commands ----------------------------------------------------------------------------------------------------------

COMMANDS = {
    name: int(value) for name, value in re.findall(r"^  k(\w+) = (\d+),", read("ipc", "commands.h").decode(), re.MULTILINE)
}
WITH_REPLY, AWAITED, FILLED = 1, 2, 4  # session_fuzz.cc


def record(name, body, how=FILLED):
    return struct.pack("<BBH", COMMANDS[name], how, len(body)) + body


def asked(name, body):
    return record(name, body, FILLED | WITH_REPLY | AWAITED)


def address(index, offset=0):
    return 0xADD2 << 48 | index << 32 | offset


def words(*values):
    return struct.pack("<%dQ" % len(values), *values)


def on_device(place, pitch=0):
    return struct.pack("<IIQQQQ", 2, 0, 0, place, pitch, 0)


def in_slot(slot, turn, offset=0):
    return struct.pack("<IIQQQQ", 5, slot, turn, offset, 0, 0)


def in_array(array, x=0):
    return struct.pack("<IIQQQQ", 1, 0, array, x, 0, 0)


def in_block(block, offset=0):
    return struct.pack("<IIQQQQ", 4, 0, block, offset, 0, 0)


def copy(to, source, width, stream=0):
    return record("Copy", to + source + words(width, 1, 1, stream))


def load(ptx, module=1):
    image = ptx.encode()
    return asked("ModuleLoad", struct.pack("<QQQII", module, len(image), 0, 1, 0) + image)


def launch(function, stream, parameters, grid=1, block=32, flags=0):
    body = struct.pack("<QQ3I3IIII3I", function, stream, grid, 1, 1, block, 1, 1, 0, len(parameters), flags, 0, 0, 0)
    return record("Launch", body + parameters)


FLOATS = struct.pack("<IIII", 2, 32, 1, 0)  # one channel of 32 bits


def session_seeds():
    memory = asked("MemoryAllocate", words(4096))
    kernel = load(SMALL_PTX) + asked("FunctionGet", words(1, 1) + b"k")
    synchronize = asked("Synchronize", struct.pack("<IIQ", 1, 0, 0))
    stream = record("StreamCreate", struct.pack("<QIiII", 5, 1, 0, 3, 0))
    return {
        "launch": memory + kernel + launch(1, 0, words(address(0))) + synchronize,
        "streams": memory + kernel + stream + record("EventCreate", words(9, 0)) + launch(1, 5, words(address(0)))
        + record("EventRecord", words(9, 5)) + record("StreamWaitEvent", words(9, 0)) + launch(1, 0, words(address(0)))
        + asked("Query", struct.pack("<IIQ", 3, 0, 9)) + asked("EventElapsed", words(9, 9)) + record("EventDestroy", words(9))
        + record("StreamDestroy", words(5)) + synchronize,
        "copies": memory + copy(on_device(address(0)), in_slot(0, 1), 256) + copy(in_slot(1, 1), on_device(address(0, 128)), 64)
        + record("CopyInline", words(address(0, 8), 0) + b"abcdefgh")
        + record("Fill", struct.pack("<QQQQQII", address(0), 64, 32, 4, 0, 7, 1)) + copy(on_device(address(0, 2048)), on_device(address(0)), 99)
        + record("MemoryFree", words(address(0))) + synchronize,
        "host": asked("HostAllocate", words(3, 8192, 0)) + record("HostMapped", words(3)) + memory
        + copy(in_block(3), on_device(address(1)), 512) + record("HostGate", words(1, 0)) + copy(on_device(address(1)), in_block(3, 64), 64)
        + record("HostDone", words(1)) + record("HostFree", words(3)) + synchronize,
        "arrays": asked("ArrayCreate", words(4) + FLOATS + words(16, 8, 0) + struct.pack("<II", 2, 0))
        + copy(in_array(4), in_slot(0, 1), 64) + asked("SurfaceCreate", struct.pack("<QII", 4, 0, 0))
        + asked("TextureCreate", struct.pack("<IIQ", 0, 0, 4)) + record("TextureDestroy", words(address(1)))
        + record("SurfaceDestroy", words(address(0))) + record("ArrayDestroy", words(4)),
        "virtual": asked("AddressReserve", words(4 << 20, 0, 0)) + asked("PhysicalCreate", words(6, 2 << 20))
        + asked("PhysicalMap", words(address(0), 2 << 20, 6)) + record("Fill", struct.pack("<QQQQQII", address(0), 64, 32, 4, 0, 7, 1))
        + record("PhysicalUnmap", words(address(0), 2 << 20)) + record("PhysicalRelease", words(6)) + record("AddressFree", words(address(0))),
        "sharing": memory + asked("MemoryExport", words(address(0))) + record("EventCreate", words(2, 1)) + asked("EventExport", words(2))
        + asked("MemoryImport", bytes(72)) + asked("EventImport", bytes(64) + words(3)) + asked("MemoryImportClose", words(address(0))),
        "code": kernel + asked("GlobalGet", words(1) + b"g") + asked("FunctionParameters", struct.pack("<QII", 1, 0, 0))
        + asked("FunctionSet", struct.pack("<QIi", 1, 8, 1024)) + asked("ClusterQuery", struct.pack("<Q12I", 1, 4, 1, 1, 32, 1, 1, 2, 1, 1, 0, 0, 0))
        + asked("ModuleOffer", struct.pack("<QII", 7, 1, 0) + bytes(32)) + record("VariablePlace", words(8, 4096) + b"g")
        + asked("LimitRaise", struct.pack("<IIQ", 1, 0, 1 << 20)) + record("UnsupportedCall", b"cudaNothing") + asked("MemoryInfo", b"")
        + asked("TensorMapEncode", b"") + record("ModuleUnload", words(1)),
    }


def ring_seeds():
    """The ring's bytes behind its tail: some whole commands, a pad, and lengths that cannot be."""

    def command(name, body):
        size = (16 + len(body) + 15) // 16 * 16
        return struct.pack("<IHHII", size, COMMANDS[name], 0xFFFF, 0, len(body)) + body + bytes(size - 16 - len(body))

    good = b"".join(command(name, bytes(160)) for name in sorted(COMMANDS) if name not in ("Pad", "End"))
    return {
        "all": words(len(good)) + good,
        "pad": words(288) + struct.pack("<IHHII", 64, 0, 0xFFFF, 0, 0) + bytes(48) + command("Launch", bytes(200)),
        "long": words(64) + struct.pack("<IHHII", 1 << 31, 19, 0xFFFF, 0, 0),
        "tail": words((1 << 64) - 16) + command("Query", bytes(16)),
    }


# --- Meeting and control ----------------------------------------------------------------------------------------------


def protocol():
    return int(number(r"kLayoutVersion = (\d+)", "ipc", "messages.h")) * 1000 + max(COMMANDS.values())


MAGIC = 0x31304554414C5323


def hello(kind=1, weight=0.0, priority=0, wishes=0, program=b"train", version=None):
    return struct.pack("<QII16sdiI64s", MAGIC, version or protocol(), kind, b"0.1.0", weight, priority, wishes, program)


def control(verb, text=b"", fields=0, weight=0.0, seconds=0.0, uid=0, form=0):
    return struct.pack("<QIIddddiIII", MAGIC, verb, fields, weight, 0.5, 0.5, seconds, 0, form, uid, len(text)) + text


def meeting_seeds():
    return {
        "session": b"\x00" + hello(),
        "wishes": b"\x80" + hello(weight=3.0, priority=-2, wishes=3),
        "version": b"\x02" + hello(version=1),
        "short": b"\x01" + hello()[:20],
    }


GROUP = b'{"kernels": ["scale", "#1"], "sharing": "placed", "sms": [80, 52], "forms": ["native", "worker"]}'


def control_seeds():
    return {
        "status": b"\x02" + control(1),
        "set": b"\x02" + control(2, b"train", fields=3, weight=2.0),
        "program": b"\x03" + control(3, b"train", fields=33, weight=2.0, uid=12345),
        "group": b"\x03" + control(9, GROUP),
        "group_text": b"\x01" + GROUP,
        "profile": b"\x03" + control(6, b"scale", fields=28, form=0xFFFF),
        "trace": b"\x03" + control(8, seconds=float("nan")),
        "profile_text": b'\x01{"kind": "set", "kernel": "scale", "compute": 0.5, "memory": null, "form": 1}',
    }


# --- Readers of code ---------------------------------------------------------------------------------------------------


def flat(value):
    """As daemon/dispatch/fields.h has texts and lists."""
    return struct.pack("<Q", len(value)) + value


def question(topic, placed=b"", places=0, kernel=b"", flags=(0, 0, 0), limit=0):
    forms = flat(kernel) + struct.pack("<BBBIIB", *flags, 90, limit, 0)
    return b"\x00" + struct.pack("<BQ", topic, places) + placed + forms


def reader_seeds():
    return {
        "variables": question(0),
        "places": question(1, flat(b"g") + struct.pack("<Q", 0x7000), 1),
        "forms": question(2, kernel=b"k", flags=(1, 1, 1)),
        "limited": question(2, kernel=b"k", flags=(0, 1, 1), limit=32),
        "error": b"\x01" + struct.pack("<I", 6) + flat(b"line 1: expected .version") + flat(b""),
        "number": b"\x01" + struct.pack("<I", 0) + flat(b"") + flat(struct.pack("<Q", 256)),
        "contents": b"\x01" + struct.pack("<I", 0) + flat(b"") + flat(flat(b"text") + struct.pack("<QQ", 1, 4) + flat(b"\x07")),
    }


# --- Configuration and code --------------------------------------------------------------------------------------------

CONFIG = """device = "sim:sms=4"
memory_limit = "50%"
max_sessions_per_user = 9
cache_size = "2G"
[scheduler]
policy = "timeslice"
[[program]]
name = "train"
user = "alice"
weight = 2.5
priority = -1
[[user]]
name = "1000"
weight = 2
memory = "4G"
[[group]]
name = "students"
max_sessions = 3
"""


def code_seeds(folder):
    source = os.path.join(folder, "k.cu")
    with open(source, "w") as file:
        file.write("__device__ int g[4] = {1, 2, 3, 4}; __managed__ int m;\n"
                   "extern \"C\" __global__ void k(float* p, float a) { p[threadIdx.x] = a * p[blockIdx.x] + g[1] + m; }\n")

    def compiled(name, *flags):
        out = os.path.join(folder, name)
        subprocess.run(["nvcc", *flags, "-o", out, source], check=True)
        with open(out, "rb") as file:
            return file.read()

    cubin = compiled("k.cubin", "-cubin", "-arch=sm_90")
    write("cubin", "kernel", cubin)
    write("cubin", "older", compiled("o.cubin", "-cubin", "-arch=sm_75"))
    write("elf", "cubin", cubin)
    for mode in ("none", "speed", "size"):
        write("fatbin", mode, compiled(mode, "-fatbin", "-arch=sm_90", "--compress-mode=" + mode))
    write("fatbin", "registers", compiled("r", "-fatbin", "-arch=compute_80", "-code=compute_80", "-maxrregcount=32"))
    plain = os.path.join(folder, "plain.c")
    with open(plain, "w") as file:
        file.write("void _start(void) {}\n")
    for name, flags in (("program", ("-Wl,-rpath,/opt/lib", "-lm", "-Wl,--no-as-needed")), ("library", ("-shared",))):
        out = os.path.join(folder, name)
        subprocess.run(["gcc", "-nostdlib", "-Os", "-s", *flags, "-Wl,-z,noseparate-code", "-o", out, plain], check=True)
        with open(out, "rb") as file:
            write("elf", name, file.read())


def main():
    written = {
        "session": session_seeds(),
        "ring": ring_seeds(),
        "meeting": meeting_seeds(),
        "control": control_seeds(),
        "reader": reader_seeds(),
    }
    for target, seeds in written.items():
        for name, data in seeds.items():
            write(target, name, data)
    write("config", "tables", CONFIG)
    write("config", "broken", "memory_limit = \"101%\"\nsurprise = [1, {a = 2}]\n")
    for name in KERNELS:
        write("ptx", name, read("tests", "golden", "kernels", name + ".ptx"))
    write("ptx", "small", SMALL_PTX)
    folder = tempfile.mkdtemp()
    try:
        code_seeds(folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
