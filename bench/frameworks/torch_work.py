"""One workload of PyTorch, repeated for a time. Prints one JSON line: steps, median and 99th percentile of a step in ms, the time
from the process's start to the end of the first kernel, and the processor time used.

    python3 torch_work.py transformer --seconds 5 [--rate STEPS_PER_SECOND] [--meet FOLDER --together N]

With --meet it begins when N programs have come to that folder, so that all run at once. With --rate the steps arrive at fixed times, as requests do, and a step's time counts from its arrival.
"""

import argparse
import gc
import json
import os
import time

with open("/proc/self/stat") as file:
    BEGAN = float(file.read().rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")


def since_start():
    return time.clock_gettime(time.CLOCK_BOOTTIME) - BEGAN


import torch
from torch import nn

IMPORTED = since_start()


def add():
    a = torch.ones(1 << 16, device="cuda")
    b = torch.ones(1 << 16, device="cuda")

    def step():
        for _ in range(1000):
            torch.add(a, b, out=b)

    return step


def gemm():
    a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(a)

    def step():
        for _ in range(20):
            torch.matmul(a, a, out=out)

    return step


def trained(model, make_input, make_target):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    x, y = make_input(), make_target()

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x).float(), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step


def cnn():
    def block(a, b):
        return [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(inplace=True), nn.Conv2d(b, b, 3, padding=1),
                nn.BatchNorm2d(b), nn.ReLU(inplace=True), nn.MaxPool2d(2)]

    model = nn.Sequential(*block(3, 64), *block(64, 128), *block(128, 256), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10))
    return trained(model.cuda(), lambda: torch.randn(64, 3, 64, 64, device="cuda"), lambda: torch.randint(0, 10, (64,), device="cuda"))


class Encoder(nn.Module):
    def __init__(self, layers=6, width=512):
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True, dropout=0.0)
        self.encoder, self.head = nn.TransformerEncoder(layer, layers), nn.Linear(width, 32)

    def forward(self, x):
        return self.head(self.encoder(x).mean(1))


def transformer():
    return trained(Encoder().cuda(), lambda: torch.randn(16, 512, 512, device="cuda"), lambda: torch.randint(0, 32, (16,), device="cuda"))


def large():
    """A training step of some 40 ms of the GPU (H100), which hide the host's part."""
    return trained(
        Encoder(layers=12, width=1024).cuda(), lambda: torch.randn(16, 512, 1024, device="cuda"),
        lambda: torch.randint(0, 32, (16,), device="cuda"))


def inference():
    """A request of which the GPU has some 10 ms."""
    model = Encoder(layers=12, width=1024).cuda().bfloat16().eval()
    x = torch.randn(64, 256, 1024, device="cuda", dtype=torch.bfloat16)

    def step():
        with torch.no_grad():
            model(x)

    return step


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config()).cuda().bfloat16().eval()
    prompt = torch.arange(32, device="cuda").unsqueeze(0)

    def step():
        with torch.no_grad():
            model.generate(prompt, max_new_tokens=16, min_new_tokens=16, do_sample=False, pad_token_id=0)

    return step


WORK = {each.__name__: each for each in (add, gemm, cnn, transformer, large, inference, gpt2)}


def meet(folder, count):
    open(os.path.join(folder, str(os.getpid())), "w").close()
    while len(os.listdir(folder)) < count:
        time.sleep(0.001)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=sorted(WORK))
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rate", type=float, default=0)
    parser.add_argument("--meet", help="empty folder where the programs meet that begin together")
    parser.add_argument("--together", type=int, default=1, help="how many they are")
    arguments = parser.parse_args()
    torch.zeros(1, device="cuda").add_(1).item()
    first = since_start()
    torch.manual_seed(1)
    step = WORK[arguments.work]()
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    if arguments.meet:
        meet(arguments.meet, arguments.together)
    # A pause of the host's collector is not the GPU's.
    gc.collect()
    gc.disable()
    times, late, began, used = [], 0, time.perf_counter(), time.process_time()
    due = began
    while time.perf_counter() - began < arguments.seconds:
        if arguments.rate:
            late += due < time.perf_counter()
            time.sleep(max(0, due - time.perf_counter()))
        else:
            due = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - due)
        due += 1 / arguments.rate if arguments.rate else 0
    took = time.perf_counter() - began
    ordered = sorted(times)
    print(json.dumps({
        "work": arguments.work, "steps": len(times), "seconds": took, "median_ms": 1e3 * ordered[len(ordered) // 2],
        "p95_ms": 1e3 * ordered[int(len(ordered) * 0.95)],
        "p99_ms": 1e3 * ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))], "late": late, "import_s": IMPORTED,
        "first_kernel_s": first, "processor_s": time.process_time() - used}))


main()
