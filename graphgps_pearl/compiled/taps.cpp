// The taps x, S x, ..., S^{K-1} x of signals on all pairs (v, m) of each graph, S acting on v: [pairs, K].

#include "tiles.h"

struct Taps {  // native.py has the same fields; all of them are 8 bytes
  Int graphs, taps;
  const Int *sizes, *crow, *col; const void* value;  // nodes of each graph; S of the nodes
  const void* x; void* out;                          // [pairs], node by node in the order of m; [pairs, taps]
};

namespace {

template <class T>
void taps(const Taps& a) {
  const T *x = (const T*)a.x, *value = (const T*)a.value;
  T* out = (T*)a.out;
  std::vector<T> powers;  // [taps, n, n]
  Int node = 0;
  for (Int g = 0; g < a.graphs; ++g) {
    const Int n = a.sizes[g], size = n * n;
    powers.assign(a.taps * size, T(0));
    std::copy(x, x + size, powers.begin());
    for (Int k = 1; k < a.taps; ++k)
      for (Int v = 0; v < n; ++v) {
        T* to = powers.data() + k * size + v * n;
        for (Int e = a.crow[node + v]; e < a.crow[node + v + 1]; ++e) {
          const T *from = powers.data() + (k - 1) * size + (a.col[e] - node) * n, w = value[e];
          for (Int m = 0; m < n; ++m) to[m] += w * from[m];
        }
      }
    for (Int k = 0; k < a.taps; ++k)
      for (Int i = 0; i < size; ++i) out[i * a.taps + k] = powers[k * size + i];
    x += size, out += size * a.taps, node += n;
  }
}

}  // namespace

extern "C" {
int taps_float32(const Taps* a) { return guarded([&] { taps<float>(*a); }); }
int taps_float64(const Taps* a) { return guarded([&] { taps<double>(*a); }); }
}
