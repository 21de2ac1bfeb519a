/* The intensity sweep: load a vector, k multiply-adds with it, 8 vectors in flight; see kernels.h.
 *
 * The product is added and taken away in turn, so that for even k the sum must be exactly 0; for
 * k = 1 it is the sum of the operand. With k above 1 the vector is multiplied by itself: 8
 * accumulators and 8 vectors then fill a file of 16 registers, and there's no room for a factor. */
#if FUSED
#define STEP_UP(k, acc, x) MADD(acc, (k) == 1 ? one : (x), x)
#define STEP_DOWN(acc, x) MSUB(acc, x, x)
#else
#define STEP_UP(k, acc, x) UNFUSED_MADD(acc, one, x)
#define STEP_DOWN(acc, x) UNFUSED_MSUB(acc, one, x)
#endif

#define SWEEP(k)                                                                                   \
    static void NAME(sweep_##k)(roof_args * args)                                                  \
    {                                                                                              \
        const TYPE *a = (const TYPE *)args->a;                                                     \
        const size_t n = args->n;                                                                  \
        V acc[CHAINS], x[CHAINS], joined = SET1((TYPE)0), one = SET1((TYPE)1);                     \
        __asm__("" : OPAQUE(one));                                                                 \
        for (size_t pass = 0; pass < args->passes; pass++) {                                       \
            UNROLLED(8)                                                                            \
            for (int c = 0; c < CHAINS; c++)                                                       \
                acc[c] = SET1((TYPE)0);                                                            \
            for (size_t i = 0; i < n; i += CHAINS * LANES) {                                       \
                UNROLLED(8)                                                                        \
                for (int c = 0; c < CHAINS; c++)                                                   \
                    x[c] = LOAD(a + i + c * LANES);                                                \
                UNROLLED(64)                                                                       \
                for (int j = 0; j < (k); j++) {                                                    \
                    UNROLLED(8)                                                                    \
                    for (int c = 0; c < CHAINS; c++)                                               \
                        acc[c] = j % 2 ? STEP_DOWN(acc[c], x[c]) : STEP_UP(k, acc[c], x[c]);       \
                }                                                                                  \
            }                                                                                      \
            JOIN(joined, acc);                                                                     \
        }                                                                                          \
        args->sum = NAME(total)(joined);                                                           \
    }

SWEEP(1)
SWEEP(2)
SWEEP(4)
SWEEP(8)
SWEEP(16)
SWEEP(32)
SWEEP(64)

#undef SWEEP
#undef STEP_UP
#undef STEP_DOWN
#undef CHAINS
#undef JOIN
