/* The kernels, written once. An instruction set's file defines, for one element type,
 *
 *   TYPE, TYPE_NAME, NAME(x)       the type, its name, a function's name with its suffix
 *   V, LANES, LOAD, STORE, SET1    the vector and how it is moved
 *   ADD, MUL, SUB                  arithmetic
 *   MADD(a, m, x), MSUB            a + m * x and a - m * x in one instruction, where there is one
 *   GROUP, STREAM(p, r)            vectors stored together, and their non-temporal store
 *   FENCE                          what makes such stores visible
 *
 * and includes this file, which adds the functions and their table and undefines what belongs to the
 * type. For the whole file: ISA, OPAQUE(v), ACCUMULATORS. */

#if defined(MADD)
#define FUSED 1
#else
#define FUSED 0
#define MADD(a, m, x) ADD(a, MUL(m, x))
#endif

/* Two instructions. The product depends on the accumulator, or it is hoisted out of the loop. */
#define UNFUSED_MADD(a, m, x) ADD(MUL(a, m), x)
#define UNFUSED_MSUB(a, m, x) SUB(MUL(a, m), x)

#include "bandwidth.h"
#include "registers.h"
#include "sweep.h"

#if FUSED
PEAK(fma, MADD, MSUB)
#endif
PEAK(muladd, UNFUSED_MADD, UNFUSED_MSUB)

/* Bytes as STREAM counts them, bytes on the bus (a plain store reads its line first), operations. */
#define ROW(kernel, function, store, arrays, stream, bus, flops)                                   \
    {kernel,  "bandwidth", TYPE_NAME, store, ISA, arrays, (stream) * sizeof(TYPE),                 \
     (bus) * sizeof(TYPE), flops, 0, NAME(function)}
#define SWEEP_ROW(k)                                                                               \
    {"sweep_" #k, "sweep", TYPE_NAME, "", ISA, 1, sizeof(TYPE), sizeof(TYPE), 2.0 * k, 0,          \
     NAME(sweep_##k)}

static const roof_kernel NAME(table)[] = {
    ROW("read", read, "", 1, 1, 1, 1),
    ROW("fill", fill, "plain", 1, 1, 2, 0),
    ROW("copy", copy, "plain", 2, 2, 3, 0),
    ROW("scale", scale, "plain", 2, 2, 3, 1),
    ROW("add", add, "plain", 3, 3, 4, 1),
    ROW("triad", triad, "plain", 3, 3, 4, 2),
    ROW("update", update, "plain", 2, 3, 3, 2),
#ifdef STREAM
    ROW("fill", fill_nt, "nontemporal", 1, 1, 1, 0),
    ROW("copy", copy_nt, "nontemporal", 2, 2, 2, 0),
    ROW("scale", scale_nt, "nontemporal", 2, 2, 2, 1),
    ROW("add", add_nt, "nontemporal", 3, 3, 3, 1),
    ROW("triad", triad_nt, "nontemporal", 3, 3, 3, 2),
#endif
#if FUSED
    PEAK_ROW("fma", fma, 2),
#endif
    PEAK_ROW("muladd", muladd, 2),
    SWEEP_ROW(1),
    SWEEP_ROW(2),
    SWEEP_ROW(4),
    SWEEP_ROW(8),
    SWEEP_ROW(16),
    SWEEP_ROW(32),
    SWEEP_ROW(64),
};

#undef ROW
#undef SWEEP_ROW
#undef FUSED
#undef UNFUSED_MADD
#undef UNFUSED_MSUB
#undef TYPE
#undef TYPE_NAME
#undef NAME
#undef V
#undef LANES
#undef LOAD
#undef STORE
#undef STREAM
#undef SET1
#undef ADD
#undef SUB
#undef MUL
#undef MADD
#undef MSUB
