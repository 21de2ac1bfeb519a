/* Arithmetic on registers alone; see kernels.h. */
#ifndef REGISTERS_H
#define REGISTERS_H

/* The same product is added and taken away in turn, so every accumulator must end exactly where it
 * began: a free check, and no value grows or turns denormal. The asm hides the operands' values, or
 * the compiler would compute with them, and makes one accumulator of many that are always equal. `minus_one` is for instructions that can't subtract. */
#define PEAK(kernel, plus, minus)                                                                  \
    static void NAME(kernel)(roof_args * args)                                                     \
    {                                                                                              \
        V acc[ACCUMULATORS];                                                                       \
        V one = SET1((TYPE)1), minus_one = SET1((TYPE)-1), x = SET1((TYPE)2);                      \
        const V start = SET1((TYPE)1);                                                             \
        __asm__("" : OPAQUE(one), OPAQUE(x), OPAQUE(minus_one));                                   \
        UNROLLED(24)                                                                               \
        for (int k = 0; k < ACCUMULATORS; k++) {                                                   \
            acc[k] = start;                                                                        \
            __asm__ volatile("" : OPAQUE(acc[k]));                                                 \
        }                                                                                          \
        for (size_t i = args->n * args->passes; i > 0; i--) {                                      \
            UNROLLED(24)                                                                           \
            for (int k = 0; k < ACCUMULATORS; k++)                                                 \
                acc[k] = plus(acc[k], one, x);                                                     \
            UNROLLED(24)                                                                           \
            for (int k = 0; k < ACCUMULATORS; k++)                                                 \
                acc[k] = minus(acc[k], one, x);                                                    \
        }                                                                                          \
        UNROLLED(24)                                                                               \
        for (int k = 0; k < ACCUMULATORS; k++) {                                                   \
            TYPE want[LANES] __attribute__((aligned(64)));                                         \
            TYPE lanes[LANES] __attribute__((aligned(64)));                                        \
            STORE(want, start);                                                                    \
            STORE(lanes, acc[k]);                                                                  \
            UNROLLED(1)                                                                            \
            for (int l = 0; l < LANES; l++)                                                        \
                args->errors += lanes[l] != want[l];                                               \
        }                                                                                          \
    }

#define PEAK_ROW(kernel, function, operations)                                                     \
    {kernel, "peak", TYPE_NAME, "", ISA, 0, 0, 0,                                                  \
     (operations) * 2.0 * ACCUMULATORS * LANES, 0, NAME(function)}

#endif
