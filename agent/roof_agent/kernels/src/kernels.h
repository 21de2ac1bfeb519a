/* The kernels, written once. An instruction set's file defines, for one element type,
 *
 *   TYPE, TYPE_NAME, NAME(x)       the type, its name, a function's name with its suffix
 *   V, LANES, LOAD, STORE, SET1    the vector and how it is moved
 *   ADD, MUL, MADD(a, m, x), MSUB  arithmetic: a + m * x, a - m * x
 *   PEAK_MADD, PEAK_MSUB           the same for the peak, where they differ
 *   STREAM_PAIR(p, v, w), FENCE    two adjoining non-temporal stores, where there are such
 *
 * and includes this file, which adds the functions and their table, and undefines the above. */

#define UNROLL 4
#define STORE_PAIR(p, v, w) (STORE(p, v), STORE((p) + LANES, w))

#define BANDWIDTH(kernel, put, fence, expression)                                                  \
    static void NAME(kernel)(roof_args * args)                                                     \
    {                                                                                              \
        TYPE *restrict dst = (TYPE *)args->dst;                                                    \
        const TYPE *restrict a = (const TYPE *)args->a;                                            \
        const TYPE *restrict b = (const TYPE *)args->b;                                            \
        const V scalar = SET1((TYPE)ROOF_SCALAR);                                                  \
        (void)b, (void)scalar;                                                                     \
        for (size_t i = 0; i < args->n; i += UNROLL * LANES) {                                     \
            V r[UNROLL];                                                                           \
            for (size_t u = 0; u < UNROLL; u++) {                                                  \
                const size_t j = i + u * LANES;                                                    \
                r[u] = (expression);                                                               \
            }                                                                                      \
            for (size_t u = 0; u < UNROLL; u += 2)                                                 \
                put(dst + i + u * LANES, r[u], r[u + 1]);                                          \
        }                                                                                          \
        fence;                                                                                     \
    }

#define COPY LOAD(a + j)
#define SCALE MUL(scalar, LOAD(a + j))
#define PLUS ADD(LOAD(a + j), LOAD(b + j))
#define TRIAD MADD(LOAD(a + j), scalar, LOAD(b + j))

BANDWIDTH(copy, STORE_PAIR, (void)0, COPY)
BANDWIDTH(scale, STORE_PAIR, (void)0, SCALE)
BANDWIDTH(add, STORE_PAIR, (void)0, PLUS)
BANDWIDTH(triad, STORE_PAIR, (void)0, TRIAD)
#ifdef STREAM_PAIR
BANDWIDTH(copy_nt, STREAM_PAIR, FENCE, COPY)
BANDWIDTH(scale_nt, STREAM_PAIR, FENCE, SCALE)
BANDWIDTH(add_nt, STREAM_PAIR, FENCE, PLUS)
BANDWIDTH(triad_nt, STREAM_PAIR, FENCE, TRIAD)
#endif

#ifndef PEAK_MADD
#define PEAK_MADD MADD
#define PEAK_MSUB MSUB
#endif

/* The same product is added and taken away in turn, so every accumulator must end exactly where it
 * began: a free check, and no value grows or turns denormal. The asm hides the operands' values, or
 * the compiler would compute with them. */
static void NAME(peak)(roof_args *args)
{
    V acc[ACCUMULATORS];
    V m = SET1((TYPE)1), x = SET1((TYPE)2);
    __asm__("" : OPAQUE(m), OPAQUE(x));
    for (int k = 0; k < ACCUMULATORS; k++)
        acc[k] = SET1((TYPE)ROOF_START);
    for (size_t i = 0; i < args->n; i++) {
#pragma GCC unroll 24
        for (int k = 0; k < ACCUMULATORS; k++)
            acc[k] = PEAK_MADD(acc[k], m, x);
#pragma GCC unroll 24
        for (int k = 0; k < ACCUMULATORS; k++)
            acc[k] = PEAK_MSUB(acc[k], m, x);
    }
    for (int k = 0; k < ACCUMULATORS; k++) {
        TYPE lanes[LANES] __attribute__((aligned(64)));
        STORE(lanes, acc[k]);
        for (int l = 0; l < LANES; l++)
            args->errors += lanes[l] != (TYPE)ROOF_START;
    }
}

/* Bytes as STREAM counts them, bytes on the bus (a plain store reads its line first), operations. */
#define ROW(kernel, function, store, arrays, stream, bus, flops)                                   \
    {kernel,  "bandwidth", TYPE_NAME, store, ISA, arrays, (stream) * sizeof(TYPE),                 \
     (bus) * sizeof(TYPE), flops, NAME(function)}

static const roof_kernel NAME(table)[] = {
    ROW("copy", copy, "plain", 2, 2, 3, 0),
    ROW("scale", scale, "plain", 2, 2, 3, 1),
    ROW("add", add, "plain", 3, 3, 4, 1),
    ROW("triad", triad, "plain", 3, 3, 4, 2),
#ifdef STREAM_PAIR
    ROW("copy", copy_nt, "nontemporal", 2, 2, 2, 0),
    ROW("scale", scale_nt, "nontemporal", 2, 2, 2, 1),
    ROW("add", add_nt, "nontemporal", 3, 3, 3, 1),
    ROW("triad", triad_nt, "nontemporal", 3, 3, 3, 2),
#endif
    {PEAK, "peak", TYPE_NAME, "", ISA, 0, 0, 0, 2.0 * 2 * ACCUMULATORS * LANES, NAME(peak)},
};

#undef UNROLL
#undef BANDWIDTH
#undef COPY
#undef SCALE
#undef PLUS
#undef TRIAD
#undef ROW
#undef TYPE
#undef TYPE_NAME
#undef NAME
#undef V
#undef LANES
#undef LOAD
#undef STORE
#undef STORE_PAIR
#undef STREAM_PAIR
#undef SET1
#undef ADD
#undef MUL
#undef MADD
#undef MSUB
#undef PEAK_MADD
#undef PEAK_MSUB
