/* x86-64 with AVX512-VNNI: the int8 dot product in 32 registers of 512 bit. */
#include "roof.h"
#if defined(__x86_64__)
#include <immintrin.h>

#define ISA "avx512vnni"
#define OPAQUE(v) "+v"(v)
#define ACCUMULATORS 24
#define NAME(x) x##_avx512vnni_i8
#define V __m512i
#define LANES 16
#define STORE(p, v) _mm512_store_si512(p, v)
#define SET1(s) _mm512_set1_epi8((char)(s))
#define DOT _mm512_dpbusd_epi32
#include "vnni.h"

static int supported(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vnni");
}

const roof_isa roof_avx512vnni = {ISA, supported, {ROOF_GROUP(table_avx512vnni_i8)}};
#endif
