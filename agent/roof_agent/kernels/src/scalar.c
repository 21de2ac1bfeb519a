/* No vectors at all: what code that doesn't vectorise gets. Built with vectorisation turned off. */
#include "roof.h"

#define ISA "scalar"
#if defined(__x86_64__)
#define OPAQUE(v) "+x"(v)
#elif defined(__aarch64__)
#define OPAQUE(v) "+w"(v)
#elif defined(__arm__)
#define OPAQUE(v) "+w"(v)
#else
#define OPAQUE(v) "+m"(v)
#endif
#define ACCUMULATORS 12
#define GROUP 4

#define TYPE float
#define TYPE_NAME "float32"
#define NAME(x) x##_scalar_f32
#define V float
#define LANES 1
#define LOAD(p) (*(p))
#define STORE(p, v) (*(p) = (v))
#define SET1(s) (s)
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#include "kernels.h"

#define TYPE double
#define TYPE_NAME "float64"
#define NAME(x) x##_scalar_f64
#define V double
#define LANES 1
#define LOAD(p) (*(p))
#define STORE(p, v) (*(p) = (v))
#define SET1(s) (s)
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#include "kernels.h"

/* A chain of additions, one a cycle on every processor: the clock, measured. From registers, since
 * some processors fold an addition of a constant into the next one. */
#define ADDS 64
#if defined(__x86_64__)
#define ADD_CHAIN(sum, one) __asm__ volatile(".rept 64\n\tadd %1, %0\n\t.endr" : "+r"(sum) : "r"(one))
#elif defined(__aarch64__) || defined(__arm__)
#define ADD_CHAIN(sum, one) __asm__ volatile(".rept 64\n\tadd %0, %0, %1\n\t.endr" : "+r"(sum) : "r"(one))
#else
#define ADD_CHAIN(sum, one)                                                                        \
    UNROLLED(64)                                                                                   \
    for (int k = 0; k < ADDS; k++) {                                                               \
        sum += one;                                                                                \
        __asm__ volatile("" : "+r"(sum));                                                          \
    }
#endif

static void clock_scalar(roof_args *args)
{
    const size_t bodies = args->n * args->passes;
    size_t sum = 0, one = 1;
    __asm__("" : "+r"(one));
    for (size_t i = bodies; i > 0; i--)
        ADD_CHAIN(sum, one);
    args->errors += sum != bodies * ADDS;
}

/* A walk along a ring of lines, each of which holds the next one's address; n loads are a whole
 * number of rounds, so each pass must end where it began. */
static void latency_scalar(roof_args *args)
{
    void *const start = args->dst;
    void **at = start;
    for (size_t pass = 0; pass < args->passes; pass++) {
        for (size_t i = 0; i < args->n; i += 16) {
            UNROLLED(16)
            for (int u = 0; u < 16; u++)
                at = *at;
        }
        args->errors += at != start;
    }
}

static const roof_kernel table_scalar_loops[] = {
    {"clock", "clock", "", "", ISA, 0, 0, 0, 0, ADDS, clock_scalar},
    {"latency", "latency", "", "", ISA, 1, ROOF_LINE, ROOF_LINE, 0, 1, latency_scalar},
};

static int supported(void)
{
    return 1;
}

const roof_isa roof_scalar = {
    ISA,
    supported,
    {ROOF_GROUP(table_scalar_f32), ROOF_GROUP(table_scalar_f64), ROOF_GROUP(table_scalar_loops)},
};
