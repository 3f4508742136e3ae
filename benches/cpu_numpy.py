"""numpy's side of `cargo bench --bench cpu`: answers one request a line on standard input.

    prepare TYPE ITEMS                    -> ok
    OPERATION TYPE ITEMS CALLS            -> seconds for that many calls, bits of the result as a float64
    version                               -> numpy's version

The items are those of benches/cpu.rs: multiples of a constant, cut to the bits that the type holds exactly.
"""

import struct
import sys
import time

import numpy as np

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
arrays = {}


def items(kind, count):
    array = np.empty(count, {"f32": np.float32, "f64": np.float64, "i32": np.int32}[kind])
    piece = 1 << 20
    for start in range(0, count, piece):
        end = min(start + piece, count)
        mixed = np.arange(start + 1, end + 1, dtype=np.uint64) * MULTIPLIER
        if kind == "f32":
            array[start:end] = (mixed >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
        elif kind == "f64":
            array[start:end] = (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
        else:
            array[start:end] = (mixed >> np.uint64(32)).astype(np.uint32).view(np.int32)
    return array


def call(operation, array):
    if operation == "sum":
        # Its own width, as ours.
        return lambda: np.sum(array, dtype=array.dtype)
    return {"min": array.min, "max": array.max}[operation]


for line in sys.stdin:
    match line.split():
        case ["version"]:
            print(np.__version__)
        case ["prepare", kind, count]:
            arrays.clear()
            arrays[kind] = items(kind, int(count))
            print("ok")
        case [operation, kind, count, calls]:
            function = call(operation, arrays[kind][: int(count)])
            start = time.perf_counter()
            for _ in range(int(calls)):
                result = function()
            seconds = time.perf_counter() - start
            print(seconds, struct.unpack("<Q", struct.pack("<d", float(result)))[0])
    sys.stdout.flush()
