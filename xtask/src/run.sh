#!/usr/bin/env bash
# Runs what `cargo xtask gpu-bundle` collected, on a machine with a CUDA driver and no Rust.
#
#   ./run.sh [all|test|bench|peers|sanitize] [ARGUMENT...]
#
# all       tests, then peers and benches
# test      every test, on the GPU (a missing GPU is a failure); arguments go to the test binaries (filters, --nocapture)
# bench     every bench; arguments go to the bench binaries
# peers     the programs that we are measured against; arguments go to them
# sanitize  the tests under compute-sanitizer, memcheck and racecheck; arguments as for test
#
# Results are written into out/ beside this script, or into the folder that WARPFOLD_OUT names.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here" || exit 1
out=${WARPFOLD_OUT:-$here/out}
mkdir -p "$out" || exit 1
export WARPFOLD_DATA=$here/data WARPFOLD_BIN=$here/bin/warpfold
export CRITERION_HOME=${CRITERION_HOME:-$out/criterion}
failed=()

# say NAME COMMAND...: runs the command, keeps its output in out/NAME.log, remembers a failure.
say() {
    local name=$1 start=$SECONDS
    shift
    echo "== $name: $*"
    "$@" 2>&1 | tee "$out/$name.log"
    local status=${PIPESTATUS[0]}
    echo "== $name ended with $status after $((SECONDS - start)) s"
    if ((status != 0)); then failed+=("$name"); fi
}

tests() {
    local binary
    for binary in "$here"/bin/test-*; do
        [[ -x $binary ]] || continue
        WARPFOLD_REQUIRE_GPU=1 say "${binary##*/}" "$binary" "$@"
    done
}

benches() {
    local binary
    for binary in "$here"/bin/bench-*; do
        [[ -x $binary ]] || continue
        say "${binary##*/}" "$binary" --bench "$@"
    done
}

peers() {
    local binary
    for binary in "$here"/bin/peer-*; do
        [[ -x $binary ]] || continue
        say "${binary##*/}" "$binary" "$@"
    done
}

sanitize() {
    local sanitizer binary tool
    sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
    if [[ ! -x $sanitizer ]]; then
        echo "compute-sanitizer is neither on PATH nor in /usr/local/cuda/bin"
        failed+=(sanitize)
        return
    fi
    for tool in memcheck racecheck; do
        for binary in "$here"/bin/test-*; do
            [[ -x $binary ]] || continue
            WARPFOLD_REQUIRE_GPU=1 say "$tool-${binary##*/}" \
                "$sanitizer" --tool "$tool" --error-exitcode 9 "$binary" --test-threads=1 "$@"
        done
    done
}

what=${1:-all}
if (($# > 0)); then shift; fi
"$here/bin/warpfold" info || failed+=(info)
case $what in
all)
    tests
    peers
    benches
    ;;
test) tests "$@" ;;
bench) benches "$@" ;;
peers) peers "$@" ;;
sanitize) sanitize "$@" ;;
*)
    echo "unknown: $what; one of all, test, bench, peers, sanitize"
    exit 2
    ;;
esac
if ((${#failed[@]} > 0)); then
    echo "FAILED: ${failed[*]}"
    exit 1
fi
echo "all of '$what' succeeded"
