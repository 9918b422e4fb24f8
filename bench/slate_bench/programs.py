"""The programs that are measured: those of bench/programs.txt, and anybody's own."""

import itertools
import os
import random
import shlex
from dataclasses import dataclass

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIST = os.path.join(FOLDER, "programs.txt")


def default_build():
    """Where slated and the programs are: beside this package where it is installed."""
    return FOLDER if os.path.isdir(os.path.join(FOLDER, "bin")) else "build/release"


class UsageError(Exception):
    """The command line asks for something that does not make sense."""


@dataclass(frozen=True)
class Program:
    """One program. `command` is None for those of kernels/, which know --reps, --barrier and --json; otherwise the words
    of somebody's own command, in which {reps} and {barrier} are replaced."""

    name: str
    size: int = 0
    paper: bool = False
    command: tuple = None

    @property
    def reports(self):
        """Whether it waits at the barrier and prints its times; otherwise its process is timed from start to end."""
        return self.command is None

    @property
    def repeats(self):
        """Whether it can be made longer."""
        return self.command is None or any("{reps}" in word for word in self.command)

    def words(self, binary, reps, warm, barrier):
        """Its command line. `binary` is the executable (or shared object) of a program of kernels/."""
        if self.command is not None:
            return [word.replace("{reps}", str(reps)) for word in self.command]
        words = [binary, "--json", "--no-check", "--size", str(self.size), "--reps", str(reps), "--warm", str(warm)]
        return words + (["--barrier", barrier] if barrier else [])


def own_program(text):
    """NAME=COMMAND of --program."""
    name, equals, command = text.partition("=")
    words = shlex.split(command)
    if not equals or not words or not name.replace("_", "").replace("-", "").isalnum():
        raise UsageError("--program %r: NAME=COMMAND is wanted" % text)
    return Program(name, command=tuple(words))


def read_list(on_gpu, sizes=None, path=LIST):
    """The programs of the list, with the sizes for this device or those of `sizes`, a dictionary."""
    programs = {}
    with open(path) as lines:
        for line in lines:
            if not line.strip() or line.startswith("#"):
                continue
            name, gpu_size, sim_size, *marks = line.split()
            listed = int(gpu_size if on_gpu else sim_size)
            programs[name] = Program(name, (sizes or {}).get(name, listed), "paper" in marks)
    return programs


def choose_pairs(words, programs, seed):
    """Pairs of names, without order. `words`: "paper" (all of the paper's programs), "all", "sample:N" (N of all others,
    every program about as often as any), or "A,B"."""

    def all_of(names):
        return list(itertools.combinations_with_replacement(names, 2))

    chosen = []
    for word in words:
        if word == "all":
            chosen += all_of(programs)
        elif word == "paper":
            chosen += all_of([name for name in programs if programs[name].paper])
        elif word.startswith("sample:") and word[7:].isdigit():
            papers = all_of([name for name in programs if programs[name].paper])
            rest = [pair for pair in all_of(programs) if pair not in papers and pair not in chosen]
            chosen += sample(rest, int(word[7:]), seed)
        else:
            pair = tuple(word.split(","))
            unknown = [name for name in pair if name not in programs]
            if len(pair) != 2 or unknown:
                raise UsageError(
                    "--pairs %s: no such %s" % (word, "program: " + ", ".join(unknown) if unknown else "set")
                )
            chosen.append(pair)
    return list(dict.fromkeys(chosen))


def sample(pairs, count, seed):
    """`count` of the pairs, at random, but always one whose programs were taken least often so far."""
    pairs = list(pairs)
    random.Random(seed).shuffle(pairs)
    taken = {name: 0 for pair in pairs for name in pair}
    chosen = []
    while pairs and len(chosen) < count:
        best = min(pairs, key=lambda pair: taken[pair[0]] + taken[pair[1]])
        pairs.remove(best)
        chosen.append(best)
        for name in best:
            taken[name] += 1
    return chosen
