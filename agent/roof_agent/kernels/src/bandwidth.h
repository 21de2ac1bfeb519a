/* Kernels that move data; see kernels.h. */

#define UNROLL 8
#define CHAINS 8

/* `sign` turns with each pass, so that a kernel that changes its operand in place comes back. */
#define BANDWIDTH(kernel, put, fence, expression)                                                  \
    static void NAME(kernel)(roof_args * args)                                                     \
    {                                                                                              \
        TYPE *restrict dst = (TYPE *)args->dst;                                                    \
        const TYPE *restrict a = (const TYPE *)args->a;                                            \
        const TYPE *restrict b = (const TYPE *)args->b;                                            \
        const size_t n = args->n, end = args->done + args->passes;                                 \
        const V scalar = SET1((TYPE)ROOF_SCALAR);                                                  \
        for (size_t pass = args->done; pass < end; pass++) {                                       \
            const V sign = SET1((TYPE)(pass % 2 ? -ROOF_SCALAR : ROOF_SCALAR));                    \
            (void)a, (void)b, (void)scalar, (void)sign;                                            \
            for (size_t i = 0; i < n; i += UNROLL * LANES) {                                       \
                UNROLLED(8)                                                                        \
                for (size_t u = 0; u < UNROLL; u += GROUP) {                                       \
                    V r[GROUP];                                                                    \
                    UNROLLED(8)                                                                    \
                    for (size_t g = 0; g < GROUP; g++) {                                           \
                        const size_t j = i + (u + g) * LANES;                                      \
                        (void)j;                                                                   \
                        r[g] = (expression);                                                       \
                    }                                                                              \
                    put(dst + i + u * LANES, r);                                                   \
                    IN_ORDER;                                                                      \
                }                                                                                  \
            }                                                                                      \
            fence;                                                                                 \
        }                                                                                          \
    }

#define PLAIN(p, r)                                                                                \
    do {                                                                                           \
        UNROLLED(8)                                                                                \
        for (size_t g = 0; g < GROUP; g++)                                                         \
            STORE((p) + g * LANES, r[g]);                                                          \
    } while (0)

#define COPY LOAD(a + j)
#define SCALE MUL(scalar, LOAD(a + j))
#define PLUS ADD(LOAD(a + j), LOAD(b + j))
#define TRIAD MADD(LOAD(a + j), scalar, LOAD(b + j))
#define UPDATE MADD(LOAD(dst + j), sign, LOAD(a + j))

BANDWIDTH(fill, PLAIN, (void)0, scalar)
BANDWIDTH(copy, PLAIN, (void)0, COPY)
BANDWIDTH(scale, PLAIN, (void)0, SCALE)
BANDWIDTH(add, PLAIN, (void)0, PLUS)
BANDWIDTH(triad, PLAIN, (void)0, TRIAD)
BANDWIDTH(update, PLAIN, (void)0, UPDATE)
#ifdef STREAM
BANDWIDTH(fill_nt, STREAM, FENCE, scalar)
BANDWIDTH(copy_nt, STREAM, FENCE, COPY)
BANDWIDTH(scale_nt, STREAM, FENCE, SCALE)
BANDWIDTH(add_nt, STREAM, FENCE, PLUS)
BANDWIDTH(triad_nt, STREAM, FENCE, TRIAD)
#endif

/* One vector of all chains, for the asm to use: a pass whose result nothing uses may be left out. */
#define JOIN(joined, chains)                                                                       \
    do {                                                                                           \
        joined = ADD(ADD(ADD(chains[0], chains[1]), ADD(chains[2], chains[3])),                    \
                     ADD(ADD(chains[4], chains[5]), ADD(chains[6], chains[7])));                   \
        __asm__ volatile("" : OPAQUE(joined) : : "memory");                                        \
    } while (0)

/* The lanes' sum; small integers, so exact in any order. */
static inline __attribute__((always_inline)) double NAME(total)(V joined)
{
    TYPE lanes[LANES] __attribute__((aligned(64)));
    STORE(lanes, joined);
    double sum = 0;
    for (int l = 0; l < LANES; l++)
        sum += (double)lanes[l];
    return sum;
}

static void NAME(read)(roof_args *args)
{
    const TYPE *a = (const TYPE *)args->a;
    const size_t n = args->n;
    V chains[CHAINS], joined = SET1((TYPE)0);
    for (size_t pass = 0; pass < args->passes; pass++) {
        UNROLLED(8)
        for (int c = 0; c < CHAINS; c++)
            chains[c] = SET1((TYPE)0);
        for (size_t i = 0; i < n; i += CHAINS * LANES) {
            UNROLLED(8)
            for (int c = 0; c < CHAINS; c++)
                chains[c] = ADD(chains[c], LOAD(a + i + c * LANES));
        }
        JOIN(joined, chains);
    }
    args->sum = NAME(total)(joined);
}

#undef UNROLL
#undef BANDWIDTH
#undef PLAIN
#undef COPY
#undef SCALE
#undef PLUS
#undef TRIAD
#undef UPDATE
