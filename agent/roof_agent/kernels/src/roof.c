/* What Python calls: the list of kernels, a barrier, one timed repetition, and the checks. */
#define _GNU_SOURCE
#include "roof.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static const roof_isa *const isas[] = {
#if defined(__x86_64__)
    &roof_avx512, &roof_avx2, &roof_sse2,
#elif defined(__aarch64__)
    &roof_neon,
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
        for (size_t g = 0; g < 2; g++) {
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
        roof_args args = {operands[0], operands[1], operands[2], ROOF_STEP, 0};
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

/* One repetition: wait for the other threads, then `calls` calls. times: wall and thread CPU seconds. */
EXPORT void roof_repeat(const roof_kernel *kernel, roof_args *args, size_t calls, roof_barrier *barrier,
                 double *times)
{
    wait_for_all(barrier);
    const double cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
    const double wall = seconds(CLOCK_MONOTONIC_RAW);
    for (size_t i = 0; i < calls; i++)
        kernel->run(args);
    times[0] = seconds(CLOCK_MONOTONIC_RAW) - wall;
    times[1] = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
}

/* Operands are small integers that repeat with a period prime to every vector length, so that a
 * misplaced element shows and every result is exact. */
#define OPERAND_A(i) ((double)(1 + (i) % 7))
#define OPERAND_B(i) ((double)(2 + (i) % 5))

#define FOR_TYPE(type, statement)                                                                  \
    if (strcmp(type, "float32") == 0) {                                                            \
        typedef float T;                                                                           \
        statement                                                                                  \
    } else {                                                                                       \
        typedef double T;                                                                          \
        statement                                                                                  \
    }

/* Touch and set the operands; to be called on the thread that will use them. */
EXPORT void roof_prepare(const char *type, roof_args *args, int arrays)
{
    FOR_TYPE(type, {
        T *dst = args->dst;
        T *a = (T *)args->a;
        T *b = (T *)args->b;
        for (size_t i = 0; i < args->n; i++) {
            dst[i] = (T)-1;
            a[i] = (T)OPERAND_A(i);
            if (arrays > 2)
                b[i] = (T)OPERAND_B(i);
        }
    })
}

/* Count the elements of dst that aren't what the kernel's definition gives. */
EXPORT size_t roof_errors(const roof_kernel *kernel, const roof_args *args)
{
    if (strcmp(kernel->family, "peak") == 0)
        return args->errors;
    const char operation = kernel->name[0];
    size_t errors = 0;
    FOR_TYPE(kernel->element_type, {
        const T *dst = args->dst;
        for (size_t i = 0; i < args->n; i++) {
            const double a = OPERAND_A(i);
            const double b = OPERAND_B(i);
            const double want = operation == 'c'   ? a
                                : operation == 's' ? ROOF_SCALAR * a
                                : operation == 'a' ? a + b
                                                   : a + ROOF_SCALAR * b;
            errors += (double)dst[i] != want;
        }
    })
    return errors;
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
