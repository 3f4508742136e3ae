// Times CUB's block reductions on sets of 1024 int, in the harness of `warpfold-ladder timcheck`, whose rows these stand
// beside. Prints CSV.
//
//   block
//
// As there: as many blocks as multiprocessors; each takes 50 sets that nobody touched before, one after the other, sums a set
// in place (the sum replaces its first item) and notes the cycles between two reads of the clock register, with a barrier in
// front of each. Threads hold 1024 / threads items each, by which BlockReduce is called once a set. `l2`: the sets have just
// been written. `dram`: L2 was filled with something else. Cycles are the average of all sets, the median of three launches,
// each of whose sums is compared with the host's.

#include <cub/block/block_reduce.cuh>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "common.cuh"

namespace {

constexpr int kSet = 1024;
constexpr int kTrials = 50;
constexpr size_t kOtherBytes = size_t{256} << 20;

template <int kThreads, cub::BlockReduceAlgorithm kAlgorithm>
__global__ void __launch_bounds__(kThreads) reduce_sets(int* sets, unsigned long long* cycles, int trials) {
    constexpr int kItems = kSet / kThreads;
    using Reduce = cub::BlockReduce<int, kThreads, kAlgorithm>;
    __shared__ typename Reduce::TempStorage storage;
    for (int trial = 0; trial < trials; ++trial) {
        const size_t set = size_t(trial) * gridDim.x + blockIdx.x;
        int* data = sets + set * kSet;
        __syncthreads();
        const long long start = clock64();
        int items[kItems];
#pragma unroll
        for (int i = 0; i < kItems; ++i) items[i] = data[i * kThreads + threadIdx.x];
        const int sum = Reduce(storage).Sum(items);
        if (threadIdx.x == 0) data[0] = sum;
        __syncthreads();
        const long long end = clock64();
        if (threadIdx.x == 0) cycles[set] = end - start;
    }
}

struct Bench {
    int blocks{};
    std::vector<int> items;
    std::vector<int> expected;
    int* sets{};
    unsigned long long* cycles{};
    char* other{};

    template <int kThreads, cub::BlockReduceAlgorithm kAlgorithm>
    void row(const char* name, bool from_l2) {
        std::vector<double> averages;
        for (int launch = 0; launch < 3; ++launch) {
            CHECK(cudaMemcpy(sets, items.data(), items.size() * sizeof(int), cudaMemcpyHostToDevice));
            if (!from_l2) CHECK(cudaMemset(other, 0, kOtherBytes));
            reduce_sets<kThreads, kAlgorithm><<<blocks, kThreads>>>(sets, cycles, kTrials);
            CHECK(cudaGetLastError());
            std::vector<int> found(items.size());
            std::vector<unsigned long long> counts(expected.size());
            CHECK(cudaMemcpy(found.data(), sets, found.size() * sizeof(int), cudaMemcpyDeviceToHost));
            CHECK(cudaMemcpy(counts.data(), cycles, counts.size() * sizeof(counts[0]), cudaMemcpyDeviceToHost));
            double all = 0;
            for (size_t set = 0; set < expected.size(); ++set) {
                if (found[set * kSet] != expected[set]) {
                    std::fprintf(stderr, "%s, %d threads: set %zu is wrong\n", name, kThreads, set);
                    std::exit(1);
                }
                all += double(counts[set]);
            }
            averages.push_back(all / double(expected.size()));
        }
        std::sort(averages.begin(), averages.end());
        std::printf("%s,%d,%s,%.0f\n", name, kThreads, from_l2 ? "l2" : "dram", averages[1]);
    }

    template <cub::BlockReduceAlgorithm kAlgorithm>
    void rows(const char* name, bool from_l2) {
        row<32, kAlgorithm>(name, from_l2);
        row<64, kAlgorithm>(name, from_l2);
        row<128, kAlgorithm>(name, from_l2);
        row<256, kAlgorithm>(name, from_l2);
        row<512, kAlgorithm>(name, from_l2);
        row<1024, kAlgorithm>(name, from_l2);
    }
};

}  // namespace

int main() {
    Bench bench;
    bench.blocks = begin("cycles a set, means");
    if (bench.blocks == 0) return 0;
    const size_t sets = size_t(bench.blocks) * kTrials;
    bench.items.resize(sets * kSet);
    bench.expected.resize(sets);
    for (size_t i = 0; i < bench.items.size(); ++i) {
        bench.items[i] = value(i);
        bench.expected[i / kSet] = int(unsigned(bench.expected[i / kSet]) + unsigned(bench.items[i]));
    }
    CHECK(cudaMalloc(&bench.sets, bench.items.size() * sizeof(int)));
    CHECK(cudaMalloc(&bench.cycles, sets * sizeof(unsigned long long)));
    CHECK(cudaMalloc(&bench.other, kOtherBytes));
    std::printf("kernel,threads,memory,cycles\n");
    for (const bool from_l2 : {true, false}) {
        bench.rows<cub::BLOCK_REDUCE_RAKING>("cub_raking", from_l2);
        bench.rows<cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>("cub_raking_commutative_only", from_l2);
        bench.rows<cub::BLOCK_REDUCE_WARP_REDUCTIONS>("cub_warp_reductions", from_l2);
    }
    return 0;
}
