/* x86-64's baseline: 16 registers of 128 bit, no multiply-add instruction. */
#include "roof.h"
#if defined(__x86_64__)
#include <immintrin.h>

#define ISA "sse2"
#define PEAK "muladd"
#define OPAQUE(v) "+x"(v)
#define ACCUMULATORS 12
#define FENCE _mm_sfence()

#define TYPE float
#define TYPE_NAME "float32"
#define NAME(x) x##_sse2_f32
#define V __m128
#define LANES 4
#define LOAD _mm_load_ps
#define STORE _mm_store_ps
#define STREAM_PAIR(p, v, w) (_mm_stream_ps(p, v), _mm_stream_ps((p) + LANES, w))
#define SET1 _mm_set1_ps
#define ADD _mm_add_ps
#define MUL _mm_mul_ps
#define MADD(a, m, x) ADD(a, MUL(m, x))
#define MSUB(a, m, x) _mm_sub_ps(a, MUL(m, x))
/* The product must depend on the accumulator, or it is hoisted out of the loop. */
#define PEAK_MADD(a, m, x) ADD(MUL(a, m), x)
#define PEAK_MSUB(a, m, x) _mm_sub_ps(MUL(a, m), x)
#include "kernels.h"

#define TYPE double
#define TYPE_NAME "float64"
#define NAME(x) x##_sse2_f64
#define V __m128d
#define LANES 2
#define LOAD _mm_load_pd
#define STORE _mm_store_pd
#define STREAM_PAIR(p, v, w) (_mm_stream_pd(p, v), _mm_stream_pd((p) + LANES, w))
#define SET1 _mm_set1_pd
#define ADD _mm_add_pd
#define MUL _mm_mul_pd
#define MADD(a, m, x) ADD(a, MUL(m, x))
#define MSUB(a, m, x) _mm_sub_pd(a, MUL(m, x))
/* The product must depend on the accumulator, or it is hoisted out of the loop. */
#define PEAK_MADD(a, m, x) ADD(MUL(a, m), x)
#define PEAK_MSUB(a, m, x) _mm_sub_pd(MUL(a, m), x)
#include "kernels.h"

static int supported(void)
{
    return 1;
}

const roof_isa roof_sse2 = {ISA, supported, {ROOF_GROUP(table_sse2_f32), ROOF_GROUP(table_sse2_f64)}};
#endif
