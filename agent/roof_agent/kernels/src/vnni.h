/* The int8 dot product of x86's VNNI: four products of unsigned by signed bytes to a 32-bit lane. The
 * file that includes this defines NAME(x), V, LANES, STORE, SET1, DOT(a, u, s) and supported(). */
#include "registers.h"

#define TYPE int
#define TYPE_NAME "int8"
#define PLUS_DOT(a, one, x) DOT(a, x, one)
#define MINUS_DOT(a, one, x) DOT(a, x, minus_one)

PEAK(dot, PLUS_DOT, MINUS_DOT)

static const roof_kernel NAME(table)[] = {PEAK_ROW("dot", dot, 8)};
