"""Runs one test file. Exit code 77, which CTest shows as skipped, when it needs a GPU and there is none."""

import ctypes
import os
import subprocess
import sys


def gpu_is_there():
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


if os.environ.get("SLATE_TEST_DEVICE", "").startswith("cuda") and not gpu_is_there():
    print("skipped: no GPU on this machine")
    sys.exit(77)
sys.exit(subprocess.call([sys.executable, os.path.join(os.path.dirname(__file__), sys.argv[1]), "-v"]))
