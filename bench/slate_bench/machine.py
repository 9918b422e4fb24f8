"""What a row says of the machine: GPU, driver, processor, commit of slate, and the GPU's clocks at that moment.

NVML is asked directly (libnvidia-ml.so.1 comes with the driver), because starting nvidia-smi takes longer than many a
measurement. Where there is no GPU, those fields are null.
"""

import ctypes
import os
import platform
import subprocess

SM_CLOCK, MEMORY_CLOCK, TEMPERATURE = 1, 2, 0


class Nvml:
    """The GPU of that index; every question answers None where NVML does not."""

    def __init__(self, index):
        self.library = self.device = None
        try:
            self.library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        device = ctypes.c_void_p()
        if self.library.nvmlInit_v2() or self.library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)):
            self.library = None
            return
        self.device = device

    def number(self, function, *arguments, kind=ctypes.c_uint):
        if self.library is None or not hasattr(self.library, function):
            return None
        value = kind()
        return None if getattr(self.library, function)(self.device, *arguments, ctypes.byref(value)) else value.value

    def text(self, function, *first):
        if self.library is None:
            return None
        buffer = ctypes.create_string_buffer(96)
        return None if getattr(self.library, function)(*first, buffer, ctypes.c_uint(96)) else buffer.value.decode()

    def name(self):
        return self.text("nvmlDeviceGetName", self.device)

    def driver(self):
        return self.text("nvmlSystemGetDriverVersion")

    def clocks(self):
        """MHz, degrees Celsius, and why the clocks are as they are (NVML's bits)."""
        return {
            "sm_mhz": self.number("nvmlDeviceGetClockInfo", SM_CLOCK),
            "memory_mhz": self.number("nvmlDeviceGetClockInfo", MEMORY_CLOCK),
            "celsius": self.number("nvmlDeviceGetTemperature", TEMPERATURE),
            "reasons": self.number("nvmlDeviceGetCurrentClocksThrottleReasons", kind=ctypes.c_ulonglong),
        }


def processor():
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def commit(folder):
    """What $SLATE_BENCH_COMMIT says, else that of the checkout that this file is in; "+" if it has changes."""

    def git(*words):
        done = subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    if os.environ.get("SLATE_BENCH_COMMIT"):
        return os.environ["SLATE_BENCH_COMMIT"]
    try:
        head = git("rev-parse", "--short=12", "HEAD")
        if head:
            return head + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
    except OSError:
        pass
    return "unknown"


def resolve(device):
    """ "auto" is the first GPU, else the simulated one; everything else is itself."""
    if device != "auto":
        return device
    return "cuda" if Nvml(0).name() else "sim"


class Machine:
    """Asked once, but for the clocks."""

    def __init__(self, device):
        self.on_gpu = device.startswith("cuda")
        self.index = int(device.partition(":")[2] or 0) if self.on_gpu else None
        self.nvml = Nvml(self.index) if self.on_gpu else None
        self.facts = {
            "gpu": self.nvml.name() if self.nvml else device,
            "driver": self.nvml.driver() if self.nvml else None,
            "processor": processor(),
            "cpus": len(os.sched_getaffinity(0)),
            "system": platform.release(),
        }
        self.commit = commit(os.path.dirname(os.path.abspath(__file__)))

    def clocks(self):
        return self.nvml.clocks() if self.nvml else None
