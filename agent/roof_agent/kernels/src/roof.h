/* The kernels' common ground: what a kernel is, and the table that each instruction set adds. */
#ifndef ROOF_H
#define ROOF_H

#include <stddef.h>

/* What a kernel works on. Arrays are 64-byte aligned and hold n elements, n a multiple of ROOF_STEP.
 * A kernel makes `passes` passes over them; in registers, n passes of the unrolled body stand for one.
 * `done` counts the passes of earlier calls, `sum` is a reduction's result, and `errors` counts what
 * a kernel itself can see to be wrong. */
typedef struct {
    void *dst;
    const void *a;
    const void *b;
    size_t n;
    size_t passes;
    size_t done;
    double sum;
    size_t errors;
} roof_args;

#define ROOF_STEP 128

/* A kernel and its cost per element and pass; an element of a kernel in registers is one unrolled
 * body. `steps` counts what must happen one after the other, additions or loads. */
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
    double steps;
    void (*run)(roof_args *);
} roof_kernel;

/* Kernels of one element type. */
typedef struct {
    const roof_kernel *kernels;
    size_t count;
} roof_group;

#define ROOF_GROUP(table) {table, sizeof(table) / sizeof((table)[0])}
#define ROOF_GROUPS 3

typedef struct {
    const char *isa;
    int (*supported)(void);
    roof_group groups[ROOF_GROUPS];
} roof_isa;

/* STREAM's scalar. With small integers as operands every result is exact in every type. */
#define ROOF_SCALAR 3

/* The latency walk visits lines of this size. */
#define ROOF_LINE 64

#define PRAGMA(text) _Pragma(#text)
#define UNROLLED(count) PRAGMA(GCC unroll count)
/* Nothing moves past this: the compiler may not gather loads and stores of different groups, which
 * costs a tenth of the first cache's rate, nor merge two passes into one. */
#define IN_ORDER __asm__ volatile("" ::: "memory")

#if defined(__x86_64__)
extern const roof_isa roof_sse2, roof_avx2, roof_avx512, roof_avx512vnni, roof_avxvnni;
#elif defined(__aarch64__)
extern const roof_isa roof_neon, roof_dotprod, roof_fp16;
#elif defined(__arm__)
extern const roof_isa roof_vfpv4;
#endif
extern const roof_isa roof_scalar;

#define EXPORT __attribute__((visibility("default")))

void roof_prepare(const roof_kernel *kernel, roof_args *args);
size_t roof_errors(const roof_kernel *kernel, const roof_args *args);

#endif
