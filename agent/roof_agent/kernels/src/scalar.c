/* No vectors at all: what code that doesn't vectorise gets. Built with vectorisation turned off. */
#include "roof.h"

#define ISA "scalar"
#define PEAK "muladd"
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

#define TYPE float
#define TYPE_NAME "float32"
#define NAME(x) x##_scalar_f32
#define V float
#define LANES 1
#define LOAD(p) (*(p))
#define STORE(p, v) (*(p) = (v))
#define SET1(s) (s)
#define ADD(a, b) ((a) + (b))
#define MUL(a, b) ((a) * (b))
#define MADD(a, m, x) ((a) + (m) * (x))
#define MSUB(a, m, x) ((a) - (m) * (x))
/* The product must depend on the accumulator, or it is hoisted out of the loop. */
#define PEAK_MADD(a, m, x) ((a) * (m) + (x))
#define PEAK_MSUB(a, m, x) ((a) * (m) - (x))
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
#define MUL(a, b) ((a) * (b))
#define MADD(a, m, x) ((a) + (m) * (x))
#define MSUB(a, m, x) ((a) - (m) * (x))
/* The product must depend on the accumulator, or it is hoisted out of the loop. */
#define PEAK_MADD(a, m, x) ((a) * (m) + (x))
#define PEAK_MSUB(a, m, x) ((a) * (m) - (x))
#include "kernels.h"

static int supported(void)
{
    return 1;
}

const roof_isa roof_scalar = {ISA, supported, {ROOF_GROUP(table_scalar_f32), ROOF_GROUP(table_scalar_f64)}};
