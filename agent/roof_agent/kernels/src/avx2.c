/* x86-64 with AVX2 and FMA: 16 registers of 256 bit. */
#include "roof.h"
#if defined(__x86_64__)
#include <immintrin.h>

#define ISA "avx2"
#define OPAQUE(v) "+x"(v)
#define ACCUMULATORS 12
#define GROUP 1
#define FENCE _mm_sfence()

#define TYPE float
#define TYPE_NAME "float32"
#define NAME(x) x##_avx2_f32
#define V __m256
#define LANES 8
#define LOAD _mm256_load_ps
#define STORE _mm256_store_ps
#define STREAM(p, r) _mm256_stream_ps(p, r[0])
#define SET1 _mm256_set1_ps
#define ADD _mm256_add_ps
#define SUB _mm256_sub_ps
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
#define STREAM(p, r) _mm256_stream_pd(p, r[0])
#define SET1 _mm256_set1_pd
#define ADD _mm256_add_pd
#define SUB _mm256_sub_pd
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
