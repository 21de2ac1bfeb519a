/* x86-64 with AVX-VNNI: the int8 dot product in 16 registers of 256 bit. */
#include "roof.h"
#if defined(ROOF_AVXVNNI)
#include <immintrin.h>

#define ISA "avxvnni"
#define OPAQUE(v) "+x"(v)
#define ACCUMULATORS 12
#define NAME(x) x##_avxvnni_i8
#define V __m256i
#define LANES 8
#define STORE(p, v) _mm256_store_si256((__m256i *)(p), v)
#define SET1(s) _mm256_set1_epi8((char)(s))
#define DOT _mm256_dpbusd_avx_epi32
#include "vnni.h"

static int supported(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("avxvnni");
}

const roof_isa roof_avxvnni = {ISA, supported, {ROOF_GROUP(table_avxvnni_i8)}};
#endif
