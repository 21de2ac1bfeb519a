/* x86-64 with AVX2 and FMA: 16 registers of 256 bit. */
#include "roof.h"
#if defined(__x86_64__)
#include <immintrin.h>

#define ISA "avx2"
#define PEAK "fma"
#define OPAQUE(v) "+x"(v)
#define ACCUMULATORS 12
#define FENCE _mm_sfence()

#define TYPE float
#define TYPE_NAME "float32"
#define NAME(x) x##_avx2_f32
#define V __m256
#define LANES 8
#define LOAD _mm256_load_ps
#define STORE _mm256_store_ps
#define STREAM_PAIR(p, v, w) (_mm256_stream_ps(p, v), _mm256_stream_ps((p) + LANES, w))
#define SET1 _mm256_set1_ps
#define ADD _mm256_add_ps
#define MUL _mm256_mul_ps
#define MADD(a, m, x) _mm256_fmadd_ps(m, x, a)
#define MSUB(a, m, x) _mm256_fnmadd_ps(m, x, a)
#include "kernels.h"

#define TYPE double
#define TYPE_NAME "float64"
#define NAME(x) x##_avx2_f64
#define V __m256d
#define LANES 4
#define LOAD _mm256_load_pd
#define STORE _mm256_store_pd
#define STREAM_PAIR(p, v, w) (_mm256_stream_pd(p, v), _mm256_stream_pd((p) + LANES, w))
#define SET1 _mm256_set1_pd
#define ADD _mm256_add_pd
#define MUL _mm256_mul_pd
#define MADD(a, m, x) _mm256_fmadd_pd(m, x, a)
#define MSUB(a, m, x) _mm256_fnmadd_pd(m, x, a)
#include "kernels.h"

static int supported(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

const roof_isa roof_avx2 = {ISA, supported, {ROOF_GROUP(table_avx2_f32), ROOF_GROUP(table_avx2_f64)}};
#endif
