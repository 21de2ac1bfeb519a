/* What Python calls: the list of kernels, a barrier and one timed repetition. The data and its check
 * are in check.c. */
#define _GNU_SOURCE
#include "roof.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const roof_isa *const isas[] = {
#if defined(__x86_64__)
#if defined(ROOF_AVXVNNI)
    &roof_avxvnni,
#endif
    &roof_avx512vnni, &roof_avx512, &roof_avx2, &roof_sse2,
#elif defined(__aarch64__)
    &roof_dotprod, &roof_fp16, &roof_neon,
#elif defined(__arm__)
    &roof_vfpv4,
#endif
    &roof_scalar,
};

/* The index-th kernel of all that this library holds, the widest instruction set first; NULL past
 * the end. */
EXPORT const roof_kernel *roof_get(size_t index)
{
    for (size_t i = 0; i < sizeof(isas) / sizeof(isas[0]); i++)
        for (size_t g = 0; g < ROOF_GROUPS; g++) {
            if (index < isas[i]->groups[g].count)
                return &isas[i]->groups[g].kernels[index];
            index -= isas[i]->groups[g].count;
        }
    return NULL;
}

/* The kernels call this library's functions from one place alone, so the test that looks for calls
 * inside kernels has nothing to make an exception for. */
EXPORT int roof_supported(const roof_kernel *kernel)
{
    for (size_t i = 0; i < sizeof(isas) / sizeof(isas[0]); i++)
        if (strcmp(isas[i]->isa, kernel->isa) == 0)
            return isas[i]->supported();
    return 0;
}

/* Run a kernel once on a little data in a forked child: 0 where it ran, else the signal that ended
 * it. A processor (or an emulator) can claim an extension that traps. */
EXPORT int roof_probe(const roof_kernel *kernel)
{
    static double operands[3][ROOF_STEP] __attribute__((aligned(64)));
    const pid_t child = fork();
    if (child < 0)
        return -1;
    if (child == 0) {
        const size_t n = strcmp(kernel->family, "latency") ? ROOF_STEP : sizeof(operands[0]) / ROOF_LINE;
        roof_args args = {.dst = operands[0], .a = operands[1], .b = operands[2], .n = n, .passes = 1};
        roof_prepare(kernel, &args);
        kernel->run(&args);
        _exit(0);
    }
    int status = 0;
    if (waitpid(child, &status, 0) < 0)
        return -1;
    return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

typedef struct {
    atomic_uint arrived;
    atomic_uint turn;
    unsigned threads;
} roof_barrier;

EXPORT size_t roof_barrier_size(void)
{
    return sizeof(roof_barrier);
}

EXPORT void roof_barrier_init(roof_barrier *barrier, unsigned threads)
{
    atomic_init(&barrier->arrived, 0);
    atomic_init(&barrier->turn, 0);
    barrier->threads = threads;
}

#define SPINS 20000

static void wait_for_all(roof_barrier *barrier)
{
    const unsigned turn = atomic_load(&barrier->turn);
    if (atomic_fetch_add(&barrier->arrived, 1) + 1 == barrier->threads) {
        atomic_store(&barrier->arrived, 0);
        atomic_fetch_add(&barrier->turn, 1);
        return;
    }
    for (unsigned spin = 0; atomic_load(&barrier->turn) == turn; spin++)
        if (spin > SPINS)
            sched_yield(); /* Fewer cores than threads: let the others arrive. */
}

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* One repetition: wait for the other threads, then `passes` passes. times: wall and thread CPU
 * seconds. */
EXPORT void roof_repeat(const roof_kernel *kernel, roof_args *args, size_t passes,
                        roof_barrier *barrier, double *times)
{
    args->passes = passes;
    wait_for_all(barrier);
    const double cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
    const double wall = seconds(CLOCK_MONOTONIC_RAW);
    kernel->run(args);
    times[0] = seconds(CLOCK_MONOTONIC_RAW) - wall;
    times[1] = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
    args->done += passes;
}

EXPORT const char *roof_compiler(void)
{
#if defined(__clang__)
    return "clang " __clang_version__;
#elif defined(__GNUC__)
    return "gcc " __VERSION__;
#else
    return "unknown";
#endif
}
