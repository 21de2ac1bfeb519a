/* x86-64's baseline: 16 registers of 128 bit, no multiply-add instruction. */
#include "roof.h"
#if defined(__x86_64__)
#include <immintrin.h>

#define ISA "sse2"
#define OPAQUE(v) "+x"(v)
#define ACCUMULATORS 12
#define GROUP 1
#define FENCE _mm_sfence()

#define TYPE float
#define TYPE_NAME "float32"
#define NAME(x) x##_sse2_f32
#define V __m128
#define LANES 4
#define LOAD _mm_load_ps
#define STORE _mm_store_ps
#define STREAM(p, r) _mm_stream_ps(p, r[0])
#define SET1 _mm_set1_ps
#define ADD _mm_add_ps
#define SUB _mm_sub_ps
#define MUL _mm_mul_ps
#include "kernels.h"

#define TYPE double
#define TYPE_NAME "float64"
#define NAME(x) x##_sse2_f64
#define V __m128d
#define LANES 2
#define LOAD _mm_load_pd
#define STORE _mm_store_pd
#define STREAM(p, r) _mm_stream_pd(p, r[0])
#define SET1 _mm_set1_pd
#define ADD _mm_add_pd
#define SUB _mm_sub_pd
#define MUL _mm_mul_pd
#include "kernels.h"

static int supported(void)
{
    return 1;
}

const roof_isa roof_sse2 = {ISA, supported, {ROOF_GROUP(table_sse2_f32), ROOF_GROUP(table_sse2_f64)}};
#endif
