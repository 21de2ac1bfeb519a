/* armv7 with NEON and VFPv4: 16 registers of 128 bit; double precision is VFP's, one lane. */
#include "roof.h"
#if defined(__arm__)
#include <arm_neon.h>
#include <sys/auxv.h>

#define ISA "neon-vfpv4"
#define ACCUMULATORS 12
#define GROUP 4

#define OPAQUE(v) "+w"(v)
#define TYPE float
#define TYPE_NAME "float32"
#define NAME(x) x##_vfpv4_f32
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
#include "kernels.h"

#define TYPE double
#define TYPE_NAME "float64"
#define NAME(x) x##_vfpv4_f64
#define V double
#define LANES 1
#define LOAD(p) (*(p))
#define STORE(p, v) (*(p) = (v))
#define SET1(s) (s)
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define MADD(a, m, x) __builtin_fma(m, x, a)
#define MSUB(a, m, x) __builtin_fma(-(m), x, a)
#include "kernels.h"

/* From the kernel's asm/hwcap.h. */
#define ARM_HWCAP_NEON (1 << 12)
#define ARM_HWCAP_VFPV4 (1 << 16)

static int supported(void)
{
    const unsigned long wanted = ARM_HWCAP_NEON | ARM_HWCAP_VFPV4;
    return (getauxval(AT_HWCAP) & wanted) == wanted;
}

const roof_isa roof_vfpv4 = {ISA, supported, {ROOF_GROUP(table_vfpv4_f32), ROOF_GROUP(table_vfpv4_f64)}};
#endif
