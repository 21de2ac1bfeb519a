/* x86-64 with AVX-512F: 32 registers of 512 bit. */
#include "roof.h"
#if defined(__x86_64__)
#include <immintrin.h>

#define ISA "avx512"
#define OPAQUE(v) "+v"(v)
#define ACCUMULATORS 24
#define GROUP 1
#define FENCE _mm_sfence()

#define TYPE float
#define TYPE_NAME "float32"
#define NAME(x) x##_avx512_f32
#define V __m512
#define LANES 16
#define LOAD _mm512_load_ps
#define STORE _mm512_store_ps
#define STREAM(p, r) _mm512_stream_ps(p, r[0])
#define SET1 _mm512_set1_ps
#define ADD _mm512_add_ps
#define SUB _mm512_sub_ps
#define MUL _mm512_mul_ps
#define MADD(a, m, x) _mm512_fmadd_ps(m, x, a)
#define MSUB(a, m, x) _mm512_fnmadd_ps(m, x, a)
#include "kernels.h"

#define TYPE double
#define TYPE_NAME "float64"
#define NAME(x) x##_avx512_f64
#define V __m512d
#define LANES 8
#define LOAD _mm512_load_pd
#define STORE _mm512_store_pd
#define STREAM(p, r) _mm512_stream_pd(p, r[0])
#define SET1 _mm512_set1_pd
#define ADD _mm512_add_pd
#define SUB _mm512_sub_pd
#define MUL _mm512_mul_pd
#define MADD(a, m, x) _mm512_fmadd_pd(m, x, a)
#define MSUB(a, m, x) _mm512_fnmadd_pd(m, x, a)
#include "kernels.h"

static int supported(void)
{
    return __builtin_cpu_supports("avx512f");
}

const roof_isa roof_avx512 = {ISA, supported, {ROOF_GROUP(table_avx512_f32), ROOF_GROUP(table_avx512_f64)}};
#endif
