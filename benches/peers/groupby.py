"""Group-by of random i64 keys and f32 values as users of CuPy and torch write it, by CUDA events.

python3 groupby.py [LOG2_N]: CSV on standard output. Each way's sums are checked against the others' before it is timed; a call is one of
them from keys and values in device memory to distinct keys and sums in device memory, and the median of 5 is what counts. Run it in the
same call as `bench-keys groups`.
"""

import statistics
import sys

import torch

try:
    import cupy
except ImportError:
    cupy = None


def torch_unique_index_add(keys, values):
    groups, inverse = torch.unique(keys, return_inverse=True)
    return groups, torch.zeros(len(groups), device=values.device).index_add_(0, inverse, values)


def torch_unique_scatter_add(keys, values):
    groups, inverse = torch.unique(keys, return_inverse=True)
    return groups, torch.zeros(len(groups), device=values.device).scatter_add_(0, inverse, values)


def torch_unique_bincount(keys, values):
    groups, inverse = torch.unique(keys, return_inverse=True)
    return groups, torch.bincount(inverse, weights=values)


def torch_sort_segment_reduce(keys, values):
    keys, order = torch.sort(keys)
    groups, lengths = torch.unique_consecutive(keys, return_counts=True)
    return groups, torch.segment_reduce(values[order], "sum", lengths=lengths)


def torch_sort_cumsum(keys, values):
    keys, order = torch.sort(keys)
    groups, lengths = torch.unique_consecutive(keys, return_counts=True)
    sums = torch.cumsum(values[order], 0, dtype=torch.float64)[torch.cumsum(lengths, 0) - 1]
    return groups, torch.diff(sums, prepend=sums.new_zeros(1)).float()


def cupy_unique_bincount(keys, values):
    groups, inverse = cupy.unique(cupy.asarray(keys), return_inverse=True)
    return groups, cupy.bincount(inverse, weights=cupy.asarray(values))


def cupy_unique_add_at(keys, values):
    groups, inverse = cupy.unique(cupy.asarray(keys), return_inverse=True)
    sums = cupy.zeros(len(groups), cupy.float32)
    cupy.add.at(sums, inverse, cupy.asarray(values))
    return groups, sums


WAYS = [
    torch_unique_index_add,
    torch_unique_scatter_add,
    torch_unique_bincount,
    torch_sort_segment_reduce,
    torch_sort_cumsum,
]
if cupy is not None:
    WAYS += [cupy_unique_bincount, cupy_unique_add_at]


def mixed(number):
    """Random bits, each number others: 64-bit integers wrap in torch too."""
    wrapped = lambda bits: bits - (1 << 64) if bits >> 63 else bits
    shifted = lambda x, by: (x >> by) & ((1 << (64 - by)) - 1)
    a = (number + wrapped(0x9E3779B97F4A7C15)) ^ shifted(number, 30)
    a = a * wrapped(0xBF58476D1CE4E5B9)
    b = (a ^ shifted(a, 27)) * wrapped(0x94D049BB133111EB)
    return b ^ shifted(b, 31)


def time(way, keys, values):
    samples = []
    way(keys, values)
    torch.cuda.synchronize()
    for _ in range(5):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        start.record()
        way(keys, values)
        # CuPy's work is on the same stream, the default one.
        end.record()
        torch.cuda.synchronize()
        samples.append(start.elapsed_time(end) * 1e3)
    return statistics.median(samples)


def main():
    n = 1 << int(sys.argv[1] if len(sys.argv) > 1 else 26)
    torch.manual_seed(1)
    versions = f"torch {torch.__version__}" + (f", cupy {cupy.__version__}" if cupy else "")
    print(f"# card: {torch.cuda.get_device_name(0)}; {versions}")
    print("peer,section,shape,n,k,stream_us")
    values = torch.rand(n, device="cuda") * 2 - 1
    for distinct in [10, 1000, 100_000, 10_000_000]:
        numbers = torch.randint(0, distinct, (n,), device="cuda")
        for shape in ["numbers", "bits"]:
            keys = mixed(numbers) if shape == "bits" else numbers
            first = None
            for way in WAYS:
                try:
                    groups, sums = way(keys, values)
                    groups, sums = torch.as_tensor(groups, device="cuda"), torch.as_tensor(sums, device="cuda").double()
                    if first is None:
                        first = groups, sums
                    assert torch.equal(groups, first[0]), way.__name__
                    assert torch.allclose(sums, first[1], rtol=1e-2, atol=1.0), way.__name__
                    print(f"{way.__name__},groups,{shape},{n},{distinct},{time(way, keys, values):.2f}", flush=True)
                except Exception as error:
                    print(f"# {way.__name__} of {distinct} {shape}: {type(error).__name__}: {str(error)[:100]}", flush=True)
                torch.cuda.empty_cache()
            if cupy is not None:
                cupy.get_default_memory_pool().free_all_blocks()


if __name__ == "__main__":
    main()
