/* aarch64: 32 registers of 128 bit, multiply-add in its accumulating form. */
#include "roof.h"
#if defined(__aarch64__)
#include <arm_neon.h>

#define ISA "neon"
#define OPAQUE(v) "+w"(v)
#define ACCUMULATORS 24
#define GROUP 4
/* stnp is a hint to the caches and changes no order of stores: nothing to fence. */
#define FENCE (void)0
#define STNP(p, r)                                                                                 \
    __asm__ volatile("stnp %q1, %q2, [%0]\n\tstnp %q3, %q4, [%0, #32]"                             \
                     :                                                                             \
                     : "r"(p), "w"(r[0]), "w"(r[1]), "w"(r[2]), "w"(r[3])                          \
                     : "memory")

#define TYPE float
#define TYPE_NAME "float32"
#define NAME(x) x##_neon_f32
#define V float32x4_t
#define LANES 4
#define LOAD vld1q_f32
#define STORE vst1q_f32
#define SET1 vdupq_n_f32
#define ADD vaddq_f32
#define SUB vsubq_f32
#define MUL vmulq_f32
#define MADD(a, m, x) vfmaq_f32(a, m, x)
#define MSUB(a, m, x) vfmsq_f32(a, m, x)
#define STREAM STNP
#include "kernels.h"

#define TYPE double
#define TYPE_NAME "float64"
#define NAME(x) x##_neon_f64
#define V float64x2_t
#define LANES 2
#define LOAD vld1q_f64
#define STORE vst1q_f64
#define SET1 vdupq_n_f64
#define ADD vaddq_f64
#define SUB vsubq_f64
#define MUL vmulq_f64
#define MADD(a, m, x) vfmaq_f64(a, m, x)
#define MSUB(a, m, x) vfmsq_f64(a, m, x)
#define STREAM STNP
#include "kernels.h"

static int supported(void)
{
    return 1;
}

const roof_isa roof_neon = {ISA, supported, {ROOF_GROUP(table_neon_f32), ROOF_GROUP(table_neon_f64)}};
#endif
