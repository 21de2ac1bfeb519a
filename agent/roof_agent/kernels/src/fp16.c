/* aarch64 with half precision arithmetic: eight lanes in 128 bit. */
#include "roof.h"
#if defined(__aarch64__)
#include <arm_neon.h>
#include <sys/auxv.h>

#define ISA "fp16"
#define OPAQUE(v) "+w"(v)
#define ACCUMULATORS 24
#define NAME(x) x##_fp16_f16
#define TYPE float16_t
#define TYPE_NAME "float16"
#define V float16x8_t
#define LANES 8
#define STORE vst1q_f16
#define SET1 vdupq_n_f16
/* By asm: compilers differ in how an extension is turned on for one file. */
#define HALF(instruction, a, m, x)                                                                 \
    ({                                                                                             \
        V sum = a;                                                                                 \
        __asm__(".arch_extension fp16\n\t" instruction " %0.8h, %1.8h, %2.8h"                      \
                : "+w"(sum)                                                                        \
                : "w"(m), "w"(x));                                                                 \
        sum;                                                                                       \
    })
#define MADD(a, m, x) HALF("fmla", a, m, x)
#define MSUB(a, m, x) HALF("fmls", a, m, x)
#include "registers.h"

PEAK(fma, MADD, MSUB)

static const roof_kernel table_fp16_f16[] = {PEAK_ROW("fma", fma, 2)};

/* From the kernel's asm/hwcap.h. */
#define ARM64_HWCAP_ASIMDHP (1UL << 10)

static int supported(void)
{
    return (getauxval(AT_HWCAP) & ARM64_HWCAP_ASIMDHP) != 0;
}

const roof_isa roof_fp16 = {ISA, supported, {ROOF_GROUP(table_fp16_f16)}};
#endif
