// Times CUB's device-wide algorithms, and plain reads and copies, on the GPU it finds. Prints CSV.
//
//   cub [SECTION...] [--min-log N] [--max-log N] [--graph-launches N]
//
// Sections: limit (reads, copies, an empty kernel), sum (f32 by length), ops (operators and types), rows (fixed-size
// segments, offsets), scan, keys (runs of equal keys). All of them if none is named; `reduce` means limit, sum and ops.
//
// How it measures: everything goes to one stream and is timed by events around it. Each call works on the next of up
// to 64 slots of a 4 GiB buffer, so that from 2^20 f32 on its input has left L2 again (shorter ones are read from L2).
// `stream_us` is the median of several runs of back-to-back calls, `graph_us` the median over replays of one captured
// graph of `--graph-launches` calls; both are microseconds a call. Before a fold of one array is timed, its result is
// compared with that of a plain loop in double precision (or 64-bit integers), up to 2^26 elements.

#include <cub/cub.cuh>
#include <cuda/std/functional>
#include <cuda_fp16.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "common.cuh"

namespace {

// --- what is allocated once -------------------------------------------------------------------------------------

constexpr size_t kArenaBytes = size_t{4} << 30;   // input slots
constexpr size_t kOutputBytes = size_t{2} << 30;  // results, scans
constexpr size_t kMaxSlots = 64;

struct Machine {
    cudaStream_t stream{};
    char* arena{};
    char* output{};
    char* scratch{};
    size_t scratch_bytes{};
    int multiprocessors{};
    int graph_launches = 20;

    // The input of call number `call` when each call reads `bytes`.
    template <class T>
    T* slot(size_t bytes, int call) const {
        const size_t stride = std::max<size_t>((bytes + 255) / 256 * 256, 256);
        const size_t slots = std::max<size_t>(1, std::min(kMaxSlots, kArenaBytes / stride));
        return reinterpret_cast<T*>(arena + (call % slots) * stride);
    }

    void reserve(size_t bytes) {
        if (bytes <= scratch_bytes) return;
        CHECK(cudaStreamSynchronize(stream));
        CHECK(cudaFree(scratch));
        CHECK(cudaMalloc(&scratch, bytes));
        scratch_bytes = bytes;
    }
};

Machine machine;

// --- timing -----------------------------------------------------------------------------------------------------

struct Stopwatch {
    cudaEvent_t start{}, stop{};
    Stopwatch() {
        CHECK(cudaEventCreate(&start));
        CHECK(cudaEventCreate(&stop));
    }
    ~Stopwatch() {
        cudaEventDestroy(start);
        cudaEventDestroy(stop);
    }
    template <class Work>
    double microseconds(Work work) {
        CHECK(cudaEventRecord(start, machine.stream));
        work();
        CHECK(cudaEventRecord(stop, machine.stream));
        CHECK(cudaEventSynchronize(stop));
        float ms = 0;
        CHECK(cudaEventElapsedTime(&ms, start, stop));
        return ms * 1e3;
    }
};

double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    return values[values.size() / 2];
}

// `call(i)` enqueues the i-th call on machine.stream.
template <class Call>
double time_on_stream(Call call) {
    constexpr double kRunMicroseconds = 8000;
    constexpr int kRuns = 7;
    for (int i = 0; i < 3; ++i) call(i);
    Stopwatch watch;
    const double once = watch.microseconds([&] {
        for (int i = 0; i < 3; ++i) call(i);
    }) / 3;
    const int calls = static_cast<int>(std::clamp(kRunMicroseconds / once, 5.0, 2000.0));
    std::vector<double> runs;
    for (int run = 0; run < kRuns; ++run)
        runs.push_back(watch.microseconds([&] {
            for (int i = 0; i < calls; ++i) call(i);
        }) / calls);
    CHECK(cudaGetLastError());
    return median(runs);
}

template <class Call>
double time_in_graph(Call call) {
    constexpr int kReplays = 15;
    cudaGraph_t graph{};
    cudaGraphExec_t executable{};
    CHECK(cudaStreamBeginCapture(machine.stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < machine.graph_launches; ++i) call(i);
    CHECK(cudaStreamEndCapture(machine.stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < 3; ++i) CHECK(cudaGraphLaunch(executable, machine.stream));
    Stopwatch watch;
    std::vector<double> replays;
    for (int i = 0; i < kReplays; ++i)
        replays.push_back(watch.microseconds([&] { CHECK(cudaGraphLaunch(executable, machine.stream)); }));
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
    return median(replays) / machine.graph_launches;
}

void header() {
    std::printf("peer,section,operation,type,segments,length,stream_us,graph_us,stream_gbps,graph_gbps\n");
}

// Times a call both ways and prints its row; `bytes` is what one call moves.
template <class Call>
void report(const char* peer, const char* section, const char* operation, const char* type, size_t segments,
            size_t length, size_t bytes, Call call) {
    const double stream = time_on_stream(call), graph = time_in_graph(call);
    std::printf("%s,%s,%s,%s,%zu,%zu,%.3f,%.3f,%.1f,%.1f\n", peer, section, operation, type, segments, length, stream,
                graph, bytes / stream / 1e3, bytes / graph / 1e3);
    std::fflush(stdout);
}

// A CUB algorithm as `call(scratch, scratch_bytes, i)`: asks for its scratch memory first.
template <class Algorithm>
auto prepared(Algorithm algorithm) {
    size_t bytes = 0;
    CHECK(algorithm(nullptr, bytes, 0));
    machine.reserve(std::max<size_t>(bytes, 1));
    return [algorithm, bytes](int i) {
        size_t given = bytes;
        CHECK(algorithm(machine.scratch, given, i));
    };
}

// --- data -------------------------------------------------------------------------------------------------------

__device__ unsigned scramble(unsigned long long index, unsigned seed) {
    unsigned x = static_cast<unsigned>(index ^ (index >> 32)) * 2654435761u + seed;
    x = (x ^ (x >> 15)) * 0x2c1b3c6du;
    x = (x ^ (x >> 12)) * 0x297a2d39u;
    return x ^ (x >> 15);
}

template <class T>
__device__ T value_from(unsigned bits) {
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<int>(bits & 0xff) - 128);
    else
        return static_cast<T>(static_cast<float>(bits & 0xffff) / 32768.0f - 1.0f);
}

template <class T>
__global__ void fill_kernel(T* data, size_t count, unsigned seed) {
    for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x)
        data[i] = value_from<T>(scramble(i, seed));
}

__global__ void ramp_kernel(int* data, size_t count, unsigned multiply, unsigned divide) {
    for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x)
        data[i] = static_cast<int>(i * multiply / divide);
}

// The whole arena as values of T: whole numbers from -128 to 127, or floats from -1 to 1.
template <class T>
void fill_arena() {
    fill_kernel<T><<<machine.multiprocessors * 8, 256, 0, machine.stream>>>(reinterpret_cast<T*>(machine.arena),
                                                                            kArenaBytes / sizeof(T), 12345u);
    CHECK(cudaGetLastError());
}

int* ramp(char* where, size_t count, unsigned multiply, unsigned divide) {
    int* data = reinterpret_cast<int*>(where);
    ramp_kernel<<<machine.multiprocessors * 8, 256, 0, machine.stream>>>(data, count, multiply, divide);
    CHECK(cudaGetLastError());
    return data;
}

// --- the answer, by other means ---------------------------------------------------------------------------------

enum class Fold { kSum, kMin, kMax, kSquares };

template <class Wide, class T>
__device__ Wide widen(T x) {
    if constexpr (std::is_same_v<T, __half>)
        return static_cast<Wide>(__half2float(x));
    else
        return static_cast<Wide>(x);
}

template <class T, class Wide>
__global__ void plain_fold(const T* data, size_t count, Fold fold, Wide* lanes) {
    Wide state = fold == Fold::kMin || fold == Fold::kMax ? widen<Wide>(data[0]) : Wide{0};
    for (size_t i = threadIdx.x; i < count; i += blockDim.x) {
        const Wide x = widen<Wide>(data[i]);
        switch (fold) {
            case Fold::kSum:
                state += x;
                break;
            case Fold::kSquares:
                state += x * x;
                break;
            case Fold::kMin:
                state = x < state ? x : state;
                break;
            case Fold::kMax:
                state = x > state ? x : state;
                break;
        }
    }
    lanes[threadIdx.x] = state;
}

// Compares one result on the device with a plain loop; sums may differ by what rounding explains. Ends the program
// where they disagree: a wrong peer is no peer.
template <class T, class R>
void verify(const char* what, const T* data, size_t count, Fold fold, const R* result) {
    using Wide = std::conditional_t<std::is_integral_v<T>, long long, double>;
    constexpr int kLanes = 1024;
    constexpr size_t kLargest = size_t{1} << 26;
    if (count > kLargest) return;
    Wide* lanes;
    CHECK(cudaMalloc(&lanes, kLanes * sizeof(Wide)));
    plain_fold<T, Wide><<<1, kLanes, 0, machine.stream>>>(data, count, fold, lanes);
    Wide host[kLanes];
    R got;
    CHECK(cudaMemcpyAsync(host, lanes, sizeof host, cudaMemcpyDeviceToHost, machine.stream));
    CHECK(cudaMemcpyAsync(&got, result, sizeof got, cudaMemcpyDeviceToHost, machine.stream));
    CHECK(cudaStreamSynchronize(machine.stream));
    CHECK(cudaFree(lanes));
    Wide expected = host[0];
    for (int lane = 1; lane < kLanes; ++lane) {
        const Wide x = host[lane];
        if (fold == Fold::kMin)
            expected = std::min(expected, x);
        else if (fold == Fold::kMax)
            expected = std::max(expected, x);
        else
            expected += x;
    }
    const double difference = std::fabs(static_cast<double>(got) - static_cast<double>(expected));
    const bool is_sum = fold == Fold::kSum || fold == Fold::kSquares;
    // The elements are at most 1 in magnitude: rounding errors of a random walk, with room.
    const double allowed =
        std::is_floating_point_v<R> && is_sum
            ? 64.0 * std::numeric_limits<R>::epsilon() * (std::sqrt(static_cast<double>(count)) + std::fabs(expected))
            : 0.0;
    if (!(difference <= allowed)) {
        std::fprintf(stderr, "%s of %zu elements: got %.17g, expected %.17g, allowed difference %g\n", what, count,
                     static_cast<double>(got), static_cast<double>(expected), allowed);
        std::exit(1);
    }
}

// --- limits -----------------------------------------------------------------------------------------------------

// Reads 16-byte words, eight in flight a thread, and keeps the compiler from leaving the loads out.
__global__ void read_kernel(const float4* data, size_t words, float* out) {
    constexpr int kInFlight = 8;
    const size_t stride = size_t{gridDim.x} * blockDim.x;
    size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
    float sum = 0;
    for (; i + (kInFlight - 1) * stride < words; i += kInFlight * stride) {
        float4 held[kInFlight];
#pragma unroll
        for (int k = 0; k < kInFlight; ++k) held[k] = __ldcs(data + i + k * stride);
#pragma unroll
        for (int k = 0; k < kInFlight; ++k) sum += (held[k].x + held[k].y) + (held[k].z + held[k].w);
    }
    for (; i < words; i += stride) {
        const float4 word = __ldcs(data + i);
        sum += (word.x + word.y) + (word.z + word.w);
    }
    if (sum == 1.0e30f) *out = sum;
}

void section_limit(int min_log, int max_log) {
    fill_arena<float>();
    float* out = reinterpret_cast<float*>(machine.output);
    report("limit", "limit", "empty_kernel", "-", 1, 0, 0,
           [=](int) { read_kernel<<<1, 32, 0, machine.stream>>>(nullptr, 0, out); });
    for (int log = std::max(min_log, 12); log <= max_log; log += 2) {
        const size_t count = size_t{1} << log, bytes = count * sizeof(float);
        double stream = std::numeric_limits<double>::infinity(), graph = stream;
        for (const int per_multiprocessor : {1, 2, 3, 4, 6, 8, 16}) {
            const int blocks = machine.multiprocessors * per_multiprocessor;
            const auto call = [=](int i) {
                read_kernel<<<blocks, 256, 0, machine.stream>>>(machine.slot<float4>(bytes, i), bytes / 16, out);
            };
            stream = std::min(stream, time_on_stream(call));
            graph = std::min(graph, time_in_graph(call));
        }
        std::printf("limit,limit,read,f32,1,%zu,%.3f,%.3f,%.1f,%.1f\n", count, stream, graph, bytes / stream / 1e3,
                    bytes / graph / 1e3);
        std::fflush(stdout);
    }
    const size_t bytes = size_t{1} << 30;
    report("limit", "limit", "copy", "f32", 1, bytes / 4, 2 * bytes, [=](int i) {
        CHECK(cudaMemcpyAsync(machine.output, machine.slot<char>(bytes, i), bytes, cudaMemcpyDeviceToDevice,
                              machine.stream));
    });
}

// --- one array --------------------------------------------------------------------------------------------------

template <class T>
void sum(const char* section, const char* type, size_t count) {
    T* out = reinterpret_cast<T*>(machine.output);
    const size_t bytes = count * sizeof(T);
    const auto call = prepared([=](void* scratch, size_t& size, int i) {
        return cub::DeviceReduce::Sum(scratch, size, machine.slot<T>(bytes, i), out, static_cast<long long>(count),
                                      machine.stream);
    });
    call(0);
    verify("sum", machine.slot<T>(bytes, 0), count, Fold::kSum, out);
    report("cub", section, "sum", type, 1, count, bytes, call);
}

// A sum with a wider accumulator than the elements.
template <class T, class Acc>
void wide_sum(const char* type, size_t count) {
    Acc* out = reinterpret_cast<Acc*>(machine.output);
    const size_t bytes = count * sizeof(T);
    const auto call = prepared([=](void* scratch, size_t& size, int i) {
        return cub::DeviceReduce::Reduce(scratch, size, machine.slot<T>(bytes, i), out, static_cast<long long>(count),
                                         cuda::std::plus<Acc>{}, Acc{0}, machine.stream);
    });
    call(0);
    verify("wide sum", machine.slot<T>(bytes, 0), count, Fold::kSum, out);
    report("cub", "ops", "sum", type, 1, count, bytes, call);
}

template <class T, bool kIsMax>
void extremum(const char* type, size_t count) {
    T* out = reinterpret_cast<T*>(machine.output);
    const size_t bytes = count * sizeof(T);
    const auto call = prepared([=](void* scratch, size_t& size, int i) {
        const T* in = machine.slot<T>(bytes, i);
        if constexpr (kIsMax)
            return cub::DeviceReduce::Max(scratch, size, in, out, static_cast<long long>(count), machine.stream);
        else
            return cub::DeviceReduce::Min(scratch, size, in, out, static_cast<long long>(count), machine.stream);
    });
    call(0);
    verify(kIsMax ? "max" : "min", machine.slot<T>(bytes, 0), count, kIsMax ? Fold::kMax : Fold::kMin, out);
    report("cub", "ops", kIsMax ? "max" : "min", type, 1, count, bytes, call);
}

void argmax(size_t count) {
    float* out = reinterpret_cast<float*>(machine.output);
    long long* index = reinterpret_cast<long long*>(machine.output + 256);
    const size_t bytes = count * sizeof(float);
    const auto call = prepared([=](void* scratch, size_t& size, int i) {
        return cub::DeviceReduce::ArgMax(scratch, size, machine.slot<float>(bytes, i), out, index,
                                         static_cast<long long>(count), machine.stream);
    });
    call(0);
    verify("argmax", machine.slot<float>(bytes, 0), count, Fold::kMax, out);
    report("cub", "ops", "argmax", "f32", 1, count, bytes, call);
}

struct Square {
    __host__ __device__ float operator()(float x) const { return x * x; }
};

void sum_of_squares(size_t count) {
    float* out = reinterpret_cast<float*>(machine.output);
    const size_t bytes = count * sizeof(float);
    const auto call = prepared([=](void* scratch, size_t& size, int i) {
        return cub::DeviceReduce::TransformReduce(scratch, size, machine.slot<float>(bytes, i), out,
                                                  static_cast<long long>(count), cuda::std::plus<float>{}, Square{},
                                                  0.0f, machine.stream);
    });
    call(0);
    verify("sum of squares", machine.slot<float>(bytes, 0), count, Fold::kSquares, out);
    report("cub", "ops", "sum_squares", "f32", 1, count, bytes, call);
}

void section_sum(int min_log, int max_log) {
    fill_arena<float>();
    for (int log = min_log; log <= max_log; log += 2) sum<float>("sum", "f32", size_t{1} << log);
}

void section_ops(int min_log, int max_log) {
    for (const int log : {20, 26, 28}) {
        if (log < min_log || log > max_log) continue;
        // As many bytes for each type as 2^log f32 have.
        const size_t words = size_t{1} << log;
        fill_arena<float>();
        extremum<float, false>("f32", words);
        extremum<float, true>("f32", words);
        argmax(words);
        sum_of_squares(words);
        fill_arena<double>();
        sum<double>("ops", "f64", words / 2);
        extremum<double, true>("f64", words / 2);
        fill_arena<int>();
        sum<int>("ops", "i32", words);
        extremum<int, true>("i32", words);
        fill_arena<long long>();
        sum<long long>("ops", "i64", words / 2);
        fill_arena<unsigned char>();
        wide_sum<unsigned char, int>("u8_acc_i32", words * 4);
        fill_arena<__half>();
        wide_sum<__half, float>("f16_acc_f32", words * 2);
    }
}

// --- segments, scans, keys --------------------------------------------------------------------------------------

void section_rows(int, int max_log) {
    fill_arena<float>();
    float* out = reinterpret_cast<float*>(machine.output);
    for (const int total : {20, 26}) {
        if (total > max_log) continue;
        for (int log = 0; log <= total; ++log) {
            const size_t segments = size_t{1} << log, length = size_t{1} << (total - log);
            const size_t bytes = sizeof(float) << total, moved = bytes + segments * sizeof(float);
            report("cub", "rows", "sum_fixed", "f32", segments, length, moved,
                   prepared([=](void* scratch, size_t& size, int i) {
                       return cub::DeviceSegmentedReduce::Sum(scratch, size, machine.slot<float>(bytes, i), out,
                                                              static_cast<long long>(segments),
                                                              static_cast<int>(length), machine.stream);
                   }));
            // Its time grows with the number of segments and with the longest: a few of them show how.
            if (log % 4 != 0 || log > 20) continue;
            const int* offsets =
                ramp(machine.output + kOutputBytes / 2, segments + 1, static_cast<unsigned>(length), 1);
            report("cub", "rows", "sum_offsets", "f32", segments, length, moved + segments * sizeof(int),
                   prepared([=](void* scratch, size_t& size, int i) {
                       return cub::DeviceSegmentedReduce::Sum(scratch, size, machine.slot<float>(bytes, i), out,
                                                              static_cast<long long>(segments), offsets, offsets + 1,
                                                              machine.stream);
                   }));
        }
    }
}

// The function x -> scale * x + shift, and the composition of two, the left one applied first.
struct Affine {
    float scale, shift;
};
struct Compose {
    __device__ Affine operator()(Affine left, Affine right) const {
        return {left.scale * right.scale, left.shift * right.scale + right.shift};
    }
};

template <class In, class Out, class Op>
void scans(const char* operation, const char* type, Op op, int min_log, int max_log) {
    Out* out = reinterpret_cast<Out*>(machine.output);
    for (int log = std::max(min_log, 10); log <= std::min(max_log, 28); log += 2) {
        const size_t count = size_t{1} << log, bytes = count * sizeof(In);
        report("cub", "scan", operation, type, 1, count, bytes + count * sizeof(Out),
               prepared([=](void* scratch, size_t& size, int i) {
                   return cub::DeviceScan::InclusiveScan(scratch, size, machine.slot<In>(bytes, i), out, op,
                                                         static_cast<long long>(count), machine.stream);
               }));
    }
}

void section_scan(int min_log, int max_log) {
    fill_arena<float>();
    float* out = reinterpret_cast<float*>(machine.output);
    for (int log = std::max(min_log, 10); log <= std::min(max_log, 28); log += 2) {
        const size_t count = size_t{1} << log, bytes = count * sizeof(float);
        report("cub", "scan", "inclusive_sum", "f32", 1, count, 2 * bytes,
               prepared([=](void* scratch, size_t& size, int i) {
                   return cub::DeviceScan::InclusiveSum(scratch, size, machine.slot<float>(bytes, i), out,
                                                        static_cast<long long>(count), machine.stream);
               }));
    }
    const cuda::std::plus<> plus;
    scans<int, int>("inclusive_sum", "i32", plus, min_log, max_log);
    scans<double, double>("inclusive_sum", "f64", plus, min_log, max_log);
    scans<unsigned char, unsigned>("inclusive_sum", "u8_u32", cuda::std::plus<unsigned>{}, min_log, max_log);
    scans<Affine, Affine>("inclusive_compose", "f32", Compose{}, min_log, max_log);
}

void section_keys(int, int max_log) {
    fill_arena<float>();
    for (const int total : {20, 26}) {
        if (total > max_log) continue;
        for (int log = 0; log <= total; log += 4) {
            const size_t runs = size_t{1} << log, count = size_t{1} << total, bytes = count * sizeof(float);
            const int* keys = ramp(machine.output, count, 1, static_cast<unsigned>(count / runs));
            int* unique = reinterpret_cast<int*>(machine.output + kOutputBytes / 4);
            float* sums = reinterpret_cast<float*>(machine.output + kOutputBytes / 2);
            int* found = reinterpret_cast<int*>(machine.output + kOutputBytes / 4 * 3);
            report("cub", "keys", "sum_by_key", "f32", runs, count / runs, 2 * bytes + runs * 8,
                   prepared([=](void* scratch, size_t& size, int i) {
                       return cub::DeviceReduce::ReduceByKey(scratch, size, keys, unique, machine.slot<float>(bytes, i),
                                                             sums, found, cuda::std::plus<float>{},
                                                             static_cast<long long>(count), machine.stream);
                   }));
        }
    }
}

struct Section {
    const char* name;
    bool in_reduce;
    void (*run)(int min_log, int max_log);
};

constexpr Section kSections[] = {
    {"limit", true, section_limit}, {"sum", true, section_sum},    {"ops", true, section_ops},
    {"rows", false, section_rows},  {"scan", false, section_scan}, {"keys", false, section_keys},
};

[[noreturn]] void usage(const char* program) {
    std::fprintf(
        stderr, "usage: %s [limit|sum|ops|rows|scan|keys|reduce...] [--min-log N] [--max-log N] [--graph-launches N]\n",
        program);
    std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::string> wanted;
    int min_log = 10, max_log = 30;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        int* number = word == "--min-log"          ? &min_log
                      : word == "--max-log"        ? &max_log
                      : word == "--graph-launches" ? &machine.graph_launches
                                                   : nullptr;
        if (number) {
            if (++i == argc || (*number = std::atoi(argv[i])) < 1) usage(argv[0]);
            continue;
        }
        const bool known = word == "reduce" || std::any_of(std::begin(kSections), std::end(kSections),
                                                           [&](const Section& s) { return word == s.name; });
        if (!known) usage(argv[0]);
        wanted.push_back(word);
    }
    if (max_log > 30) usage(argv[0]);

    cudaDeviceProp device{};
    int driver = 0;
    CHECK(cudaGetDeviceProperties(&device, 0));
    CHECK(cudaDriverGetVersion(&driver));
    machine.multiprocessors = device.multiProcessorCount;
    CHECK(cudaStreamCreateWithFlags(&machine.stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&machine.arena, kArenaBytes));
    CHECK(cudaMalloc(&machine.output, kOutputBytes));
    std::printf("# %s, %d multiprocessors, L2 %d bytes, CUDA driver %d.%d, CUB %d.%d.%d, %d launches a graph\n",
                device.name, device.multiProcessorCount, device.l2CacheSize, driver / 1000, driver % 1000 / 10,
                CUB_MAJOR_VERSION, CUB_MINOR_VERSION, CUB_SUBMINOR_VERSION, machine.graph_launches);
    header();
    for (const Section& section : kSections) {
        const auto names = [&](const std::string& word) {
            return word == section.name || (word == "reduce" && section.in_reduce);
        };
        if (wanted.empty() || std::any_of(wanted.begin(), wanted.end(), names)) section.run(min_log, max_log);
    }
    CHECK(cudaStreamSynchronize(machine.stream));
    return 0;
}
