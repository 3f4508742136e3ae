// Times a block-wide reduction by key with CUB's BlockRadixSort on the GPU it finds. Prints CSV.
//
//   keyed
//
// The rules are those of `warpfold-ladder keyed`: sums of int by 16 keys, an item a thread; a block on every multiprocessor folds
// 50 sets of its own, and notes the multiprocessor's cycles for each, from before the set is read until its results are written.
// Every set's results are compared with the host's before anything is printed.
//
// `cub_sorted`: BlockRadixSort by the four bits of a key, then BlockDiscontinuity for where keys begin, BlockScan with the
// flagged operator, and the last item of each key writes. `cub_per_key`: a BlockReduce for each key.

#include <cub/cub.cuh>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "common.cuh"

namespace {

constexpr int kKeys = 16;
constexpr int kKeyBits = 4;
constexpr int kSets = 50;

struct Flagged {
    int value;
    int flag;
};

struct Add {
    __device__ Flagged operator()(const Flagged& left, const Flagged& right) const {
        return {right.flag ? right.value : left.value + right.value, left.flag | right.flag};
    }
};

struct Differs {
    __device__ bool operator()(int left, int right) const { return left != right; }
};

template <int kThreads, bool kSorted>
__global__ void __launch_bounds__(kThreads)
fold(const int* keys, const int* items, int* values, unsigned long long* cycles) {
    using Sort = cub::BlockRadixSort<int, kThreads, 1, int>;
    using Heads = cub::BlockDiscontinuity<int, kThreads>;
    using Scan = cub::BlockScan<Flagged, kThreads>;
    using Reduce = cub::BlockReduce<int, kThreads>;
    __shared__ union {
        typename Sort::TempStorage sort;
        typename Heads::TempStorage heads;
        typename Scan::TempStorage scan;
        typename Reduce::TempStorage reduce;
    } room;
    __shared__ int table[kKeys];
    for (int round = 0; round < kSets; ++round) {
        const int set = blockIdx.x * kSets + round;
        __syncthreads();
        const long long start = clock64();
        if (threadIdx.x < kKeys) table[threadIdx.x] = 0;
        __syncthreads();
        int key[1] = {keys[set * kThreads + threadIdx.x]};
        int item[1] = {items[set * kThreads + threadIdx.x]};
        if constexpr (kSorted) {
            Sort(room.sort).Sort(key, item, 0, kKeyBits);
            __syncthreads();
            int heads[1], tails[1];
            Heads(room.heads).FlagHeadsAndTails(heads, tails, key, Differs{});
            __syncthreads();
            Flagged own{item[0], heads[0]}, total;
            Scan(room.scan).InclusiveScan(own, total, Add{});
            if (tails[0]) table[key[0]] = total.value;
        } else {
            for (int now = 0; now < kKeys; ++now) {
                const int total = Reduce(room.reduce).Sum(key[0] == now ? item[0] : 0);
                if (threadIdx.x == 0) table[now] = total;
                __syncthreads();
            }
        }
        __syncthreads();
        if (threadIdx.x < kKeys) values[set * kKeys + threadIdx.x] = table[threadIdx.x];
        __syncthreads();
        if (threadIdx.x == 0) cycles[set] = clock64() - start;
    }
}

template <int kThreads, bool kSorted>
void measure(int blocks, bool uniform) {
    const int sets = blocks * kSets;
    const size_t n = size_t(sets) * kThreads;
    std::vector<int> keys(n), items(n), expected(size_t(sets) * kKeys), found(expected.size());
    for (size_t i = 0; i < n; ++i) {
        keys[i] = uniform ? int((unsigned(i) * 0x9e3779b1u) >> 28) : 11;
        items[i] = value(i);
        int& sum = expected[i / kThreads * kKeys + keys[i]];
        sum = int(unsigned(sum) + unsigned(items[i]));
    }
    int *on_keys, *on_items, *values;
    unsigned long long* cycles;
    CHECK(cudaMalloc(&on_keys, n * sizeof(int)));
    CHECK(cudaMalloc(&on_items, n * sizeof(int)));
    CHECK(cudaMalloc(&values, expected.size() * sizeof(int)));
    CHECK(cudaMalloc(&cycles, sets * sizeof(unsigned long long)));
    CHECK(cudaMemcpy(on_keys, keys.data(), n * sizeof(int), cudaMemcpyDefault));
    CHECK(cudaMemcpy(on_items, items.data(), n * sizeof(int), cudaMemcpyDefault));
    for (int launch = 0; launch < 2; ++launch) {
        fold<kThreads, kSorted><<<blocks, kThreads>>>(on_keys, on_items, values, cycles);
        CHECK(cudaGetLastError());
    }
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(found.data(), values, found.size() * sizeof(int), cudaMemcpyDefault));
    const char* name = kSorted ? "cub_sorted" : "cub_per_key";
    if (found != expected) {
        std::fprintf(stderr, "%s, %d threads, is wrong\n", name, kThreads);
        std::exit(1);
    }
    std::vector<unsigned long long> took(sets);
    CHECK(cudaMemcpy(took.data(), cycles, sets * sizeof(unsigned long long), cudaMemcpyDefault));
    double sum = 0;
    for (auto of_set : took) sum += double(of_set);
    std::printf("%s,%s,%d,%.0f\n", name, uniform ? "uniform" : "one", kThreads, sum / sets);
    CHECK(cudaFree(on_keys));
    CHECK(cudaFree(on_items));
    CHECK(cudaFree(values));
    CHECK(cudaFree(cycles));
}

template <bool kSorted>
void measure_sizes(int blocks, bool uniform) {
    measure<128, kSorted>(blocks, uniform);
    measure<256, kSorted>(blocks, uniform);
    measure<512, kSorted>(blocks, uniform);
    measure<1024, kSorted>(blocks, uniform);
}

}  // namespace

int main() {
    const int blocks = begin("cycles of a set, means");
    if (blocks == 0) return 0;
    std::printf("kernel,keys,threads,cycles\n");
    for (bool uniform : {true, false}) {
        measure_sizes<true>(blocks, uniform);
        measure_sizes<false>(blocks, uniform);
    }
}
