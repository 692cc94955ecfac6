/* Memory throughput by the rules of STREAM: the same four kernels, counted alike, in plain loops as a
 * C compiler takes them. `make bench` holds `virtbench workload memory` against it.
 *
 * gcc -O3 -march=native -fopenmp -fno-tree-loop-distribute-patterns -ffp-contract=off
 * Usage: bandwidth ELEMENTS PASSES; prints "kernel bytes-per-second" a line, of the quickest pass.
 */
#include <omp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static double *array(size_t elements) {
    void *memory = mmap(NULL, elements * sizeof(double), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("bandwidth: memory");
        exit(4);
    }
    return memory;
}

int main(int argc, char **argv) {
    const char *names[] = {"copy", "scale", "add", "triad"};
    const double bytes[] = {16, 16, 24, 24};
    const double q = 0.41421356237309515;
    if (argc != 3 || atoll(argv[1]) <= 0 || atoi(argv[2]) <= 0) {
        fprintf(stderr, "usage: bandwidth ELEMENTS PASSES\n");
        return 2;
    }
    const ptrdiff_t n = atoll(argv[1]);
    const int passes = atoi(argv[2]);
    double *restrict a = array(n), *restrict b = array(n), *restrict c = array(n);
#pragma omp parallel for
    for (ptrdiff_t i = 0; i < n; i++) {
        a[i] = 1.0;
        b[i] = 2.0;
        c[i] = 0.0;
    }
    for (int kernel = 0; kernel < 4; kernel++) {
        double least = 1e300;
        for (int pass = 0; pass < passes; pass++) {
            const double begin = omp_get_wtime();
            switch (kernel) {
            case 0:
#pragma omp parallel for
                for (ptrdiff_t i = 0; i < n; i++) c[i] = a[i];
                break;
            case 1:
#pragma omp parallel for
                for (ptrdiff_t i = 0; i < n; i++) b[i] = q * c[i];
                break;
            case 2:
#pragma omp parallel for
                for (ptrdiff_t i = 0; i < n; i++) c[i] = a[i] + b[i];
                break;
            default:
#pragma omp parallel for
                for (ptrdiff_t i = 0; i < n; i++) a[i] = b[i] + q * c[i];
            }
            const double elapsed = omp_get_wtime() - begin;
            least = elapsed < least ? elapsed : least;
        }
        printf("%s %.0f\n", names[kernel], bytes[kernel] * (double)n / least);
    }
    /* Without a use of the arrays the loops could be left out. */
    return a[n / 2] + b[n / 2] + c[n / 2] > 0.0 ? 0 : 1;
}
