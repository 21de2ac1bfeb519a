/* The data that kernels work on, and what must have become of it, in closed form. */
#include "roof.h"

#include <stdint.h>
#include <string.h>

/* Operands are small integers that repeat with a period prime to every vector length, so that a
 * misplaced element shows and every result is exact. A's mean is 0: a sum of millions of them stays
 * small. */
#define OPERAND_A(i) ((double)((i) % 7) - 3)
#define OPERAND_B(i) ((double)((i) % 5) + 2)
#define UNTOUCHED (-1)
/* After so many elements both operands repeat: what is set and wanted comes from tables of this size,
 * or setting and checking would take longer than measuring. */
#define PERIOD 35
#define EACH(n, i, j)                                                                              \
    for (size_t i = 0; i < (n); i += PERIOD)                                                       \
        for (size_t j = 0; j < PERIOD && i + j < (n); j++)

#define FOR_TYPE(type, statement)                                                                  \
    if (strcmp(type, "float32") == 0) {                                                            \
        typedef float T;                                                                           \
        statement                                                                                  \
    } else {                                                                                       \
        typedef double T;                                                                          \
        statement                                                                                  \
    }

/* Sattolo's algorithm: a random permutation that is one single ring. */
static void link_ring(char *lines, size_t n)
{
    uint64_t random = 88172645463325252u;
    for (size_t i = 0; i < n; i++)
        *(void **)(lines + i * ROOF_LINE) = lines + i * ROOF_LINE;
    for (size_t i = n - 1; i > 0; i--) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        void **here = (void **)(lines + i * ROOF_LINE);
        void **there = (void **)(lines + random % i * ROOF_LINE);
        void *const next = *here;
        *here = *there;
        *there = next;
    }
}

/* Touch and set the data; to be called on the thread that will use it. */
EXPORT void roof_prepare(const roof_kernel *kernel, roof_args *args)
{
    if (kernel->arrays == 0)
        return;
    if (strcmp(kernel->family, "latency") == 0) {
        link_ring(args->dst, args->n);
        return;
    }
    const int writes = kernel->store[0] != 0;
    const int reads = kernel->arrays - writes;
    FOR_TYPE(kernel->element_type, {
        T *dst = args->dst;
        T *a = (T *)args->a;
        T *b = (T *)args->b;
        T of_a[PERIOD];
        T of_b[PERIOD];
        EACH(PERIOD, i, j)
        {
            of_a[j] = (T)OPERAND_A(j);
            of_b[j] = (T)OPERAND_B(j);
        }
        EACH(writes ? args->n : 0, i, j)
            dst[i + j] = (T)UNTOUCHED;
        EACH(reads > 0 ? args->n : 0, i, j)
            a[i + j] = of_a[j];
        EACH(reads > 1 ? args->n : 0, i, j)
            b[i + j] = of_b[j];
    })
}

static double want(const char *name, size_t i, size_t passes)
{
    const double a = OPERAND_A(i), b = OPERAND_B(i);
    switch (name[0]) {
    case 'f':
        return ROOF_SCALAR;
    case 'c':
        return a;
    case 's':
        return ROOF_SCALAR * a;
    case 'a':
        return a + b;
    case 't':
        return a + ROOF_SCALAR * b;
    default: /* update adds and takes away in turn */
        return UNTOUCHED + (passes % 2 ? ROOF_SCALAR * a : 0);
    }
}

/* Count the results that aren't what the kernel's definition gives. */
EXPORT size_t roof_errors(const roof_kernel *kernel, const roof_args *args)
{
    size_t errors = args->errors;
    if (kernel->store[0] != 0) {
        FOR_TYPE(kernel->element_type, {
            const T *dst = args->dst;
            T wanted[PERIOD];
            EACH(PERIOD, i, j)
                wanted[j] = (T)want(kernel->name, j, args->done);
            EACH(args->n, i, j)
                errors += dst[i + j] != wanted[j];
        })
    } else if (strcmp(kernel->name, "read") == 0 || strcmp(kernel->name, "sweep_1") == 0) {
        /* Whole periods add up to 0. */
        double sum = 0;
        for (size_t i = args->n - args->n % PERIOD; i < args->n; i++)
            sum += OPERAND_A(i);
        errors += args->sum != sum;
    } else {
        errors += args->sum != 0;
    }
    return errors;
}
