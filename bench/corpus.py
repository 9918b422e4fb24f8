"""Strangers' CUDA programs as PTX, to measure coverage on: fetches Debian source packages that carry .cu files, and
compiles every one that nvcc can compile by itself. A second run does only what is missing.

    python3 bench/corpus.py --directory /tmp/corpus --mirror http://MIRROR/debian

Leaves src/<package>/ (sources and headers alone), ptx/*.ptx, and manifest.json: for each PTX file its source, the
include directories that nvcc had, and the names of its entries. bench/source_coverage.py reads the manifest. Needs
apt, dpkg-source's helpers (tar, xz) and nvcc. Packages are fetched by apt with a configuration of its own.
"""

import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile

# Debian source packages and the versions that the recorded figures were made with; another version is taken, and
# said, when Debian no longer has that one.
PACKAGES = [
    ("darknet", "0.0.0+git20180914.61c9d02e-3"),
    ("ffmpeg", "7:9.0.2-4"),
    ("lammps", "20260704+dfsg-2"),
    ("starpu", "1.4.10+dfsg-2"),
    ("elpa", "2022.11.001-4"),
    ("relion", "3.1.3-2"),
    ("suitesparse", "1:5.12.0+dfsg-2"),
    ("astra-toolbox", "2.1.0-2"),
    ("bart", "0.8.00-3"),
    ("cmtk", "3.3.1p2+dfsg-2"),
    ("gnss-sdr", "0.0.17-1"),
    ("papi", "7.0.0-2"),
    ("flann", "1.9.2+dfsg-1+deb12u1"),
    ("colmap", "3.8-1"),
    ("opencv", "4.6.0+dfsg-12"),
    ("pcl", "1.13.0+dfsg-3"),
    ("plastimatch", "1.9.4+dfsg.2-0+deb12u1"),
    ("whisper.cpp", "1.9.5+dfsg-1"),
    ("llama.cpp", "1:0.7.0+dfsg-2"),
    ("ggml", "0.27.0-1"),
    ("magma", "2.9.0+ds-3"),
    ("nvidia-cuda-samples", "12.5~dfsg-2"),
    ("mumax3", "3.12-1"),
    ("superlu-dist", "9.2.1+dfsg1-2"),
    ("cp2k", "2025.2-3"),
    ("petsc", "3.18.5+dfsg1-1"),
    ("faiss", "1.7.3-1"),
    ("xgboost", "1.7.4-1"),
    ("abinit", "9.6.2-1"),
    ("eigen3", "3.4.0-4"),
    ("gromacs", "2022.5-2"),
]
# What a package's own configuration would have set: macros, and headers that it would have written.
OPTIONS = {
    "lammps": ["-DNV_KERNEL", "-D_SINGLE_DOUBLE"],
    "darknet": ["-DGPU"],
    "elpa": ["-DWITH_NVIDIA_GPU_VERSION"],
    "bart": ["-DUSE_CUDA"],
    "gnss-sdr": ["-DCUDA_GPU_ACCEL=1"],
}
STARPU = ["#define STARPU_USE_CUDA 1", "#define STARPU_MAXNODES 16", "#define STARPU_NMAXBUFS 8", "#define STARPU_MAXIMPLEMENTATIONS 4",
          "#define STARPU_NMAX_SCHED_CTXS 10", "#define STARPU_MAXCUDADEVS 4", "#define STARPU_HAVE_UNISTD_H 1",
          "#define STARPU_MAJOR_VERSION 1", "#define STARPU_MINOR_VERSION 4", "#include <sys/types.h>",
          "typedef ssize_t starpu_ssize_t;"]
FILES = {
    "starpu": {"starpu_config.h": "\n".join(["#pragma once", *STARPU, ""])},
    "opencv": {"opencv2/opencv_modules.hpp": "#pragma once\n", "cvconfig.h": "#pragma once\n#define HAVE_CUDA 1\n"},
    "gromacs": {"config.h": "#pragma once\n#define GMX_GPU 1\n#define GMX_GPU_CUDA 1\n#define GMX_DOUBLE 0\n"},
    "elpa": {"config-f90.h": "#define WITH_NVIDIA_GPU_VERSION 1\n"},
}
SOURCES = (".cu", ".cuh", ".h", ".hh", ".hpp", ".hxx", ".inl", ".inc", ".ipp", ".tcc", ".impl", ".c", ".cpp", ".cc")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)
ENTRY = re.compile(r"^\s*(?:\.visible\s+|\.weak\s+)*\.entry\s+([\w$]+)", re.MULTILINE)
APT = """Dir::Etc::SourceList "{0}/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "{0}/lists";
Dir::Cache "{0}/cache";
APT::Sandbox::User "root";
"""
LIST = "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main contrib non-free\n"

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--directory", default="/tmp/corpus")
parser.add_argument("--mirror", required=True, help="address of a mirror of Debian")
parser.add_argument("--nvcc", default="nvcc")
parser.add_argument("--jobs", type=int, default=2)
parser.add_argument("--seconds", type=int, default=120, help="the most that one file may take")
parser.add_argument("--only", nargs="*", help="these packages alone")
arguments = parser.parse_args()


def place(*parts):
    return os.path.join(arguments.directory, *parts)


def apt(*command, **options):
    environment = dict(os.environ, APT_CONFIG=place("apt", "apt.conf"))
    return subprocess.run(["apt-get", *command], env=environment, capture_output=True, text=True, **options)


def prepare_apt():
    os.makedirs(place("apt", "lists", "partial"), exist_ok=True)
    os.makedirs(place("apt", "cache", "archives", "partial"), exist_ok=True)
    with open(place("apt", "apt.conf"), "w") as file:
        file.write(APT.format(place("apt")))
    with open(place("apt", "sources.list"), "w") as file:
        file.writelines(LIST % (arguments.mirror, suite) for suite in ("bookworm", "sid"))
    if apt("update").returncode != 0:
        print("apt-get update failed: only what is already here is used", file=sys.stderr)


def versions(package):
    """The versions that the mirror lists, newest suite last."""
    environment = dict(os.environ, APT_CONFIG=place("apt", "apt.conf"))
    shown = subprocess.run(["apt-cache", "showsrc", package], env=environment, capture_output=True, text=True)
    return re.findall(r"^Version: (\S+)", shown.stdout, re.MULTILINE)


def fetch(package, version):
    """The package's .orig archives, in download/<package>/, of the first version that the mirror really has; or none.
    Not all of apt's files need to arrive: packaging and signatures are of no use here."""
    folder = place("download", package)

    def archives():
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        return [os.path.join(folder, name) for name in names if re.search(r"\.orig.*\.tar\.\w+$", name)]

    for wanted in dict.fromkeys([version, *reversed(versions(package))]):
        if archives():
            break
        os.makedirs(folder, exist_ok=True)
        apt("source", "--download-only", "--only-source", "%s=%s" % (package, wanted), cwd=folder)
    names = ", ".join(os.path.basename(path) for path in archives())
    print("%s: %s" % (package, names or "the mirror has no source"), file=sys.stderr, flush=True)
    return archives()


def is_source(name):
    return name.endswith(SOURCES) or "." not in os.path.basename(name)  # Eigen's headers have no suffix


def unpack(package, archives):
    """Sources and headers alone, with their folders, in src/<package>/."""
    target = place("src", package)
    if os.path.isdir(target) or not archives:
        return
    os.makedirs(target + ".part", exist_ok=True)
    for archive in archives:
        with tarfile.open(archive) as tar:
            wanted = [m for m in tar if m.isreg() and is_source(m.name) and ".." not in m.name.split("/")]
            tar.extractall(target + ".part", members=wanted)
    os.rename(target + ".part", target)


class Package:
    """Where a package's headers are, to guess the include directories that its build would give."""

    def __init__(self, name):
        self.root = place("src", name)
        self.name = name
        self.headers = {}
        self.sources = []
        for file, text in FILES.get(name, {}).items():
            path = os.path.join(self.root, "configured", file)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as out:
                out.write(text)
        for folder, _, names in os.walk(self.root):
            for file in names:
                path = os.path.join(folder, file)
                self.headers.setdefault(file, []).append(path)
                if file.endswith(".cu"):
                    self.sources.append(path)
        self.sources.sort()

    @functools.lru_cache(maxsize=None)
    def text(self, path):
        with open(path, errors="replace") as file:
            return file.read()

    def include_directories(self, source):
        """For every header that is spelt in the file or in what it includes: the folder, nearest to the source, from
        which that spelling finds it."""
        found, seen, queue = [], {source}, [source]
        while queue:
            path = queue.pop()
            for spelling in INCLUDE.findall(self.text(path)):
                candidates = [h for h in self.headers.get(os.path.basename(spelling), ()) if h.endswith("/" + spelling.lstrip("./"))]
                if not candidates:
                    continue
                best = max(candidates, key=lambda h: ("/configured/" in h, len(os.path.commonpath([h, source])), -len(h)))
                folder = best[: -len(spelling.lstrip("./")) - 1]
                if folder not in found and folder != os.path.dirname(path):
                    found.append(folder)
                if best not in seen:
                    seen.add(best)
                    queue.append(best)
        return found


def key_of(package, source):
    relative = os.path.relpath(source, package.root)
    short = relative.split("/", 1)[-1].replace("/", "__")
    if len(short) > 120:
        short = hashlib.sha1(short.encode()).hexdigest()[:10] + short[-100:]
    return package.name + "__" + short[: -len(".cu")]


def compile_one(package, source):
    """The manifest's record of one file; compiled unless a result, good or bad, is already there."""
    key = key_of(package, source)
    record_path = place("state", key + ".json")
    if os.path.exists(record_path):
        with open(record_path) as file:
            return json.load(file)
    includes = package.include_directories(source)
    part, ptx = place("ptx", key + ".ptx.part"), place("ptx", key + ".ptx")
    command = ["nice", "timeout", str(arguments.seconds), arguments.nvcc, "-ptx", "-arch=sm_90", "-O3", "-std=c++17", "-w"]
    options = OPTIONS.get(package.name, [])
    command += options + ["-I" + folder for folder in includes] + ["-o", part, source]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    record = {"package": package.name, "source": source, "includes": includes, "options": options, "ptx": None, "entries": []}
    if done.returncode == 0 and os.path.exists(part):
        with open(part) as file:
            record["entries"] = ENTRY.findall(file.read())
        if record["entries"]:
            os.rename(part, ptx)
            record["ptx"] = ptx
        else:
            os.remove(part)
    else:
        errors = [line for line in done.stderr.splitlines() if "error" in line]
        record["error"] = errors[0] if errors else "exit code %d" % done.returncode
    with open(record_path, "w") as file:
        json.dump(record, file)
    return record


def summary(records):
    rows, bodies = {}, set()
    for record in records:
        row = rows.setdefault(record["package"], [0, 0, 0])
        row[0] += 1
        row[1] += record["ptx"] is not None
        row[2] += len(record["entries"])
        bodies.update(record["entries"])
    print("%-24s %6s %6s %8s" % ("package", ".cu", ".ptx", "entries"))
    for name in sorted(rows):
        print("%-24s %6d %6d %8d" % (name, *rows[name]))
    total = [sum(row[i] for row in rows.values()) for i in range(3)]
    print("%-24s %6d %6d %8d, %d distinct names" % ("all", *total, len(bodies)))


def main():
    for folder in ("download", "src", "ptx", "state"):
        os.makedirs(place(folder), exist_ok=True)
    if shutil.which(arguments.nvcc) is None:
        sys.exit("no %s" % arguments.nvcc)
    chosen = [(name, version) for name, version in PACKAGES if not arguments.only or name in arguments.only]
    if any(not os.path.isdir(place("src", name)) for name, _ in chosen):
        prepare_apt()
    records = []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        pending = []
        for name, version in chosen:
            unpack(name, [] if os.path.isdir(place("src", name)) else fetch(name, version))
            package = Package(name)
            pending += [pool.submit(compile_one, package, source) for source in package.sources]
        records = [future.result() for future in pending]
    with open(place("manifest.json"), "w") as file:
        json.dump([record for record in records if record["ptx"]], file, indent=1)
    summary(records)


main()
