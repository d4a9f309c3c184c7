/* What the scenario programs share: checks that say where, and small whole numbers as float16. */
#ifndef CHECK_H
#define CHECK_H

#include <flashrt/exec.h>
#include <flashrt/spyrec.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                             \
    do {                                                                                             \
        if (!(condition)) {                                                                          \
            fprintf(stderr, "%s:%d: %s\n%s\n", __FILE__, __LINE__, #condition, spyrec_last_error()); \
            exit(1);                                                                                 \
        }                                                                                            \
    } while (0)

enum { WIDTH = 64 };

static inline uint16_t half_of(unsigned value) /* 0 to 2048 */
{
    unsigned exponent = 0;
    if (value == 0) return 0;
    while ((value >> (exponent + 1)) != 0) exponent++;
    return (uint16_t)(((exponent + 15) << 10) | (((value << 10) >> exponent) & 0x3ff));
}

static inline void fill(uint16_t* row, unsigned value)
{
    for (int i = 0; i < WIDTH; i++) row[i] = half_of(value);
}

static inline int all_are(const uint16_t* row, unsigned value)
{
    for (int i = 0; i < WIDTH; i++)
        if (row[i] != half_of(value)) return 0;
    return 1;
}

static inline void put(spyrec_program program, int argument, frt_buffer buffer, unsigned value, int stream)
{
    uint16_t row[WIDTH];
    fill(row, value);
    CHECK(spyrec_program_write(program, argument, buffer, row, sizeof row, stream) == FRT_OK);
}

static inline int holds(spyrec_program program, int argument, frt_buffer buffer, unsigned value, int stream)
{
    uint16_t row[WIDTH];
    CHECK(spyrec_program_read(program, argument, buffer, row, sizeof row, stream) == FRT_OK);
    return all_are(row, value);
}

#endif
