// What the peer programs share.

#pragma once

#include <cub/version.cuh>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

// Ends the program where a call of the runtime fails, and says where.
inline void check(cudaError_t code, const char* what, int line) {
    if (code == cudaSuccess) return;
    std::fprintf(stderr, "line %d: %s: %s (%s)\n", line, what, cudaGetErrorString(code), cudaGetErrorName(code));
    std::exit(1);
}
#define CHECK(call) check((call), #call, __LINE__)

// The values of `warpfold-ladder`.
inline int value(size_t i) { return int((unsigned(i) * 0x9e3779b1u) >> 7) - (1 << 24); }

// The first line of a section of `warpfold-ladder`, and the card's multiprocessors; 0 if there is no card.
inline int begin(const char* what) {
    int devices = 0, driver = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        std::printf("skipped: no GPU\n");
        return 0;
    }
    cudaDeviceProp card{};
    CHECK(cudaGetDeviceProperties(&card, 0));
    CHECK(cudaDriverGetVersion(&driver));
    std::printf("# card: %s, %d multiprocessors; driver CUDA %d.%d; CUB %d.%d.%d; %s\n", card.name,
                card.multiProcessorCount, driver / 1000, driver % 1000 / 10, CUB_VERSION / 100000,
                CUB_VERSION / 100 % 1000, CUB_VERSION % 100, what);
    return card.multiProcessorCount;
}
