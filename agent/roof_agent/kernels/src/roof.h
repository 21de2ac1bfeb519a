/* The kernels' common ground: what a kernel is, and the table that each instruction set adds. */
#ifndef ROOF_H
#define ROOF_H

#include <stddef.h>

/* One call's operands. Bandwidth kernels: dst, a and b hold n elements, 64-byte aligned, n a multiple
 * of ROOF_STEP. Peak kernels: n passes of the unrolled body; errors counts the lanes of accumulators
 * that did not come back to their start value. */
typedef struct {
    void *dst;
    const void *a;
    const void *b;
    size_t n;
    size_t errors;
} roof_args;

#define ROOF_STEP 256

/* A kernel and its cost per element and call (per pass for a peak kernel). */
typedef struct {
    const char *name;
    const char *family;
    const char *element_type;
    const char *store; /* plain, nontemporal or empty */
    const char *isa;
    int arrays;
    double stream_bytes;
    double bus_bytes;
    double flops;
    void (*run)(roof_args *);
} roof_kernel;

/* Kernels of one element type; lists end with a NULL. */
typedef struct {
    const roof_kernel *kernels;
    size_t count;
} roof_group;

#define ROOF_GROUP(table) {table, sizeof(table) / sizeof((table)[0])}

typedef struct {
    const char *isa;
    int (*supported)(void);
    roof_group groups[2];
} roof_isa;

/* STREAM's scalar. With small integers as operands every result is exact in every type. */
#define ROOF_SCALAR 3
#define ROOF_START 1

#if defined(__x86_64__)
extern const roof_isa roof_sse2, roof_avx2, roof_avx512;
#elif defined(__aarch64__)
extern const roof_isa roof_neon;
#elif defined(__arm__)
extern const roof_isa roof_vfpv4;
#endif
extern const roof_isa roof_scalar;

#endif
