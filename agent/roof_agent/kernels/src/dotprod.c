/* aarch64 with the dot product extension: four products of bytes to a 32-bit lane. */
#include "roof.h"
#if defined(__aarch64__)
#include <arm_neon.h>
#include <sys/auxv.h>

#define ISA "dotprod"
#define OPAQUE(v) "+w"(v)
#define ACCUMULATORS 24
#define NAME(x) x##_dotprod_i8
#define TYPE int32_t
#define TYPE_NAME "int8"
#define V int32x4_t
#define LANES 4
#define STORE vst1q_s32
#define SET1(s) vreinterpretq_s32_s8(vdupq_n_s8((int8_t)(s)))
/* By asm: compilers differ in how an extension is turned on for one file. */
#define DOT(a, m, x)                                                                               \
    ({                                                                                             \
        V sum = a;                                                                                 \
        __asm__(".arch_extension dotprod\n\tsdot %0.4s, %1.16b, %2.16b"                            \
                : "+w"(sum)                                                                        \
                : "w"(m), "w"(x));                                                                 \
        sum;                                                                                       \
    })
#define MINUS_DOT(a, m, x) DOT(a, minus_one, x)
#include "registers.h"

PEAK(dot, DOT, MINUS_DOT)

static const roof_kernel table_dotprod_i8[] = {PEAK_ROW("dot", dot, 8)};

/* From the kernel's asm/hwcap.h. */
#define ARM64_HWCAP_ASIMDDP (1UL << 20)

static int supported(void)
{
    return (getauxval(AT_HWCAP) & ARM64_HWCAP_ASIMDDP) != 0;
}

const roof_isa roof_dotprod = {ISA, supported, {ROOF_GROUP(table_dotprod_i8)}};
#endif
